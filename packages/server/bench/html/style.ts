/**
 * Follows the console's design: slate colors, one accent color, borders instead of shadows, and tabular
 * figures.
 */
export const style = `
:root {
  color-scheme: light dark;
  --page: light-dark(#f8fafc, #0b1120); --card: light-dark(#ffffff, #111a2c);
  --text: light-dark(#0f172a, #e2e8f0); --quiet: light-dark(#526078, #94a3b8);
  --line: light-dark(#e2e8f0, #24314a); --track: light-dark(#f1f5f9, #1b2740);
  --baseline: light-dark(#cbd5e1, #3b4a66);
  --accent: light-dark(oklch(0.62 0.12 180), oklch(0.75 0.12 180));
  --good: light-dark(#15803d, #4ade80); --bad: light-dark(#b91c1c, #f87171);
}
* { box-sizing: border-box; margin: 0; }
body { background: var(--page); color: var(--text); font: 14px/20px Inter, system-ui, sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 1040px; margin: 0 auto; padding: 48px 24px 64px; }
h1 { font-size: 28px; line-height: 36px; font-weight: 600; letter-spacing: -0.01em; }
h2 { font-size: 20px; line-height: 28px; font-weight: 600; margin: 48px 0 12px; }
h3 { font-size: 14px; font-weight: 600; }
.lead { color: var(--quiet); max-width: 68ch; margin-top: 8px; }
.summary { margin-top: 24px; color: var(--quiet); }
.summary strong { font-size: 28px; line-height: 36px; font-weight: 600; color: var(--text); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 24px; margin-top: 16px; padding: 16px; background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
dt { color: var(--quiet); }
section > p { color: var(--quiet); max-width: 80ch; margin-bottom: 12px; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 16px; margin-top: 8px; }
article header { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 16px; margin-bottom: 12px; }
.wanted { color: var(--quiet); }
.badge { margin-left: 8px; white-space: nowrap; } .badge i { font-style: normal; font-size: 10px; }
.badge.met { color: var(--good); } .badge.missed { color: var(--bad); } .badge.open { color: var(--quiet); }
.bars { --name: 300px; --number: 104px; --note: 92px; position: relative; display: grid; grid-template-columns: var(--name) 1fr var(--number) var(--note); align-items: center; gap: 4px 12px; }
.name { color: var(--quiet); } .number { text-align: right; white-space: nowrap; } .note { color: var(--quiet); white-space: nowrap; }
.name.own { color: var(--text); font-weight: 500; }
.track { position: relative; height: 12px; background: var(--track); border-radius: 3px; }
.bar { height: 100%; border-radius: 3px; }
.bar.own { background: var(--accent); } .bar.baseline { background: var(--baseline); } .bar.over { background: var(--bad); }
.bar.cut { mask-image: linear-gradient(90deg, #000 88%, transparent); }
.bars > .aim { position: absolute; top: -4px; bottom: -4px; width: 2px; background: var(--text); opacity: 0.6; z-index: 1;
  left: calc(var(--name) + 12px + (100% - var(--name) - var(--number) - var(--note) - 36px) * (tan(atan2(var(--at), 100%)))); }
.track > .aim { position: absolute; top: -4px; bottom: -4px; width: 2px; left: var(--at); background: var(--text); opacity: 0.55; }
.facts { display: flex; flex-wrap: wrap; gap: 0 20px; margin-top: 12px; padding-top: 8px; border-top: 1px solid var(--line); color: var(--quiet); font-size: 13px; }
table { width: 100%; border-collapse: collapse; background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
th, td { text-align: left; padding: 8px 12px; border-bottom: 1px solid var(--line); } th { color: var(--quiet); font-weight: 500; }
tr:last-child td { border-bottom: 0; } .figure { text-align: right; white-space: nowrap; } .plot { width: 26%; }
@media (max-width: 760px) { .bars { --name: 120px; --number: 80px; --note: 60px; } .plot { display: none; } main { padding: 24px 16px; } }
`
