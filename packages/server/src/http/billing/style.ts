import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../package-root.ts'
import { onFirstUse } from '../on-first-use.ts'

/** The fonts of the console. Their file names contain a digest. */
function typefaces(): string {
  const folder = join(packageRoot(), 'dist/console/assets')
  const files = existsSync(folder) ? readdirSync(folder) : []
  const face = (family: string, beginning: string) => {
    const file = files.find((name) => name.startsWith(beginning) && name.endsWith('.woff2'))
    return file
      ? `@font-face { font-family: "${family}"; src: url("/assets/${file}") format("woff2"); font-weight: 100 900; font-display: swap; }\n`
      : ''
  }
  return face('Inter', 'inter-latin-wght-') + face('JetBrains Mono', 'jetbrains-mono-latin-wght-')
}

export const billingStyle = onFirstUse(() => typefaces() + rules)

/** Both themes use the same tokens. Narrow screens get one column, and print is always light. */
const rules = `
:root {
  color-scheme: light dark;
  --canvas: oklch(0.985 0.002 250); --surface: oklch(1 0 0); --sunken: oklch(0.967 0.003 250);
  --line: oklch(0.915 0.005 250); --line-strong: oklch(0.72 0.01 250); --ink: oklch(0.24 0.015 255); --muted: oklch(0.47 0.018 255);
  --accent: oklch(0.62 0.12 180); --on-accent: oklch(0.16 0.03 190); --accent-text: oklch(0.47 0.095 185);
  --green-text: oklch(0.45 0.12 150); --blue-text: oklch(0.48 0.16 258); --amber-text: oklch(0.48 0.11 65); --red-text: oklch(0.5 0.19 27);
  --amber-soft: oklch(0.97 0.03 85); --red-soft: oklch(0.97 0.015 25); --green-soft: oklch(0.97 0.025 150);
  --c0: oklch(0.62 0.12 180); --c1: oklch(0.58 0.16 255); --c2: oklch(0.7 0.14 70); --c3: oklch(0.58 0.17 330);
  --c4: oklch(0.6 0.15 150); --c5: oklch(0.62 0.18 30); --c6: oklch(0.55 0.15 295); --c7: oklch(0.6 0.02 255);
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --canvas: oklch(0.175 0.008 255); --surface: oklch(0.205 0.009 255); --sunken: oklch(0.235 0.01 255);
    --line: oklch(0.295 0.011 255); --line-strong: oklch(0.5 0.013 255); --ink: oklch(0.935 0.005 255); --muted: oklch(0.72 0.013 255);
    --accent: oklch(0.75 0.12 180); --on-accent: oklch(0.18 0.03 190); --accent-text: oklch(0.79 0.11 180);
    --green-text: oklch(0.8 0.14 150); --blue-text: oklch(0.78 0.1 250); --amber-text: oklch(0.83 0.12 78); --red-text: oklch(0.77 0.13 22);
    --amber-soft: oklch(0.27 0.035 75); --red-soft: oklch(0.26 0.045 22); --green-soft: oklch(0.26 0.04 150);
    --c0: oklch(0.75 0.12 180); --c1: oklch(0.7 0.13 250); --c2: oklch(0.79 0.14 75); --c3: oklch(0.72 0.14 330);
    --c4: oklch(0.74 0.15 150); --c5: oklch(0.72 0.15 30); --c6: oklch(0.7 0.12 295); --c7: oklch(0.66 0.02 255);
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--canvas); color: var(--ink); font: 14px/20px Inter, system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; font-variant-numeric: tabular-nums; }
a { color: var(--accent-text); text-underline-offset: 2px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code { font: 13px/20px "JetBrains Mono", ui-monospace, Menlo, Consolas, "Liberation Mono", monospace; }
header { border-bottom: 1px solid var(--line); background: var(--surface); }
header > div, main { max-width: 1280px; margin: 0 auto; padding: 0 24px; }
header > div { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 16px; min-height: 48px; padding-top: 8px; padding-bottom: 8px; }
header strong { display: inline-flex; align-items: center; gap: 8px; font-weight: 600; letter-spacing: -0.025em; }
header .until { margin-left: auto; color: var(--muted); }
main { padding-top: 24px; padding-bottom: 64px; display: grid; gap: 24px; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
section { background: var(--surface); border: 1px solid var(--line); border-radius: 6px; padding: 16px; }
.wide { grid-column: 1 / -1; }
h1 { margin: 0; font-size: 20px; line-height: 28px; }
h2 { margin: 0 0 12px; font-size: 16px; line-height: 24px; }
p { margin: 0 0 12px; }
p:last-child { margin-bottom: 0; }
.muted { color: var(--muted); }
.figure { font-size: 28px; line-height: 36px; font-weight: 600; margin: 0 0 12px; }
.figure small { font-size: 14px; font-weight: 400; color: var(--muted); }
dl { display: grid; grid-template-columns: auto 1fr; gap: 4px 16px; margin: 0; }
dt { color: var(--muted); }
dd { margin: 0; text-align: right; }
.state { display: inline-flex; align-items: center; gap: 8px; white-space: nowrap; }
.mark { width: 8px; height: 8px; border-radius: 50%; background: currentColor; }
.bad .mark { border-radius: 1px; } .near .mark { width: 10px; border-radius: 0; clip-path: polygon(50% 0, 100% 100%, 0 100%); }
.off .mark { background: none; border: 1.5px solid currentColor; }
.good { color: var(--green-text); } .busy { color: var(--blue-text); } .near { color: var(--amber-text); } .bad { color: var(--red-text); } .off { color: var(--muted); }
.notice { grid-column: 1 / -1; margin: 0; padding: 10px 16px; border: 1px solid var(--line); border-left-width: 3px; border-radius: 6px; background: var(--surface); }
.notice.good { background: var(--green-soft); border-color: currentColor; } .notice.bad { background: var(--red-soft); border-color: currentColor; } .notice.near { background: var(--amber-soft); border-color: currentColor; }
.card { display: flex; justify-content: space-between; gap: 12px; padding: 12px 16px; margin-bottom: 16px; border: 1px solid var(--line); border-radius: 6px; background: var(--sunken); }
form { display: grid; grid-template-columns: 1fr 108px; gap: 12px; align-items: end; }
.actions { grid-column: 1 / -1; display: flex; flex-wrap: wrap; align-items: center; gap: 12px; }
#remove { display: none; }
label { display: grid; gap: 4px; color: var(--muted); font-size: 13px; }
input { width: 100%; height: 32px; padding: 0 10px; border: 1px solid var(--line-strong); border-radius: 6px; background: var(--surface); color: var(--ink); font: inherit; font-variant-numeric: tabular-nums; }
button { height: 32px; padding: 0 12px; border: 1px solid transparent; border-radius: 6px; background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 500; cursor: pointer; }
button.quiet { background: none; border-color: var(--line-strong); color: var(--ink); font-weight: 400; }
button:disabled { opacity: 0.55; cursor: not-allowed; }
details { margin-top: 16px; }
details p { margin-top: 8px; }
summary { cursor: pointer; color: var(--muted); margin-bottom: 8px; }
td code { white-space: nowrap; }
table { width: 100%; border-collapse: collapse; }
th, td { height: 36px; padding: 6px 12px 6px 0; border-top: 1px solid var(--line); text-align: left; font-weight: 400; }
thead th { border-top: 0; color: var(--muted); font-size: 13px; }
th:last-child, td:last-child { padding-right: 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.number { text-align: right; white-space: nowrap; }
tfoot td, tfoot th { font-weight: 600; border-top: 1px solid var(--line-strong); }
.heading { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 16px; align-items: baseline; margin-bottom: 12px; }
.heading h2 { margin: 0; }
.heading nav { display: flex; gap: 16px; }
.chart { overflow-x: auto; margin-bottom: 16px; }
.chart svg { display: block; width: 100%; min-width: 560px; height: auto; }
.chart text { fill: var(--muted); font-size: 11px; }
.chart line { stroke: var(--line); }
.swatch { display: inline-block; vertical-align: -1px; width: 10px; height: 10px; margin-right: 8px; }
.s0 { fill: var(--c0); } .s1 { fill: var(--c1); } .s2 { fill: var(--c2); } .s3 { fill: var(--c3); }
.s4 { fill: var(--c4); } .s5 { fill: var(--c5); } .s6 { fill: var(--c6); } .s7 { fill: var(--c7); }
.invoice { grid-template-columns: minmax(0, 1fr); max-width: 760px; }
.invoice .heading { margin-bottom: 24px; }
.invoice h2 { margin: 24px 0 4px; font-size: 14px; line-height: 20px; }
.invoice dl { grid-template-columns: auto 1fr; margin-bottom: 8px; }
.invoice dd { text-align: left; overflow-wrap: anywhere; }
@media (max-width: 720px) {
  header > div, main { padding-left: 16px; padding-right: 16px; }
  header .until { margin-left: 0; width: 100%; }
  main { grid-template-columns: minmax(0, 1fr); gap: 16px; padding-top: 16px; }
  section { padding: 16px; }
  .optional { display: none; }
  .chart text { font-size: 17px; }
}
@media print {
  :root { color-scheme: light; }
  body, section { background: oklch(1 0 0); }
  header, .screen { display: none; }
  main { max-width: none; padding: 0; }
  section { border: 0; padding: 0; }
}
`
