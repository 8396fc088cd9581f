/**
 * The style sheet of the API reference. The light and dark themes use the same variables; narrow screens get
 * one column.
 */
export const docsStyle = `
:root {
  --ground: oklch(0.99 0.003 240); --raised: oklch(0.965 0.005 240); --line: oklch(0.9 0.008 240);
  --text: oklch(0.26 0.02 250); --quiet: oklch(0.48 0.02 250); --accent: oklch(0.5 0.1 180);
  --get: oklch(0.5 0.1 180); --post: oklch(0.48 0.15 255); --patch: oklch(0.5 0.11 70); --delete: oklch(0.52 0.18 27);
  --sans: Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  --mono: "JetBrains Mono", ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: oklch(0.19 0.015 250); --raised: oklch(0.235 0.017 250); --line: oklch(0.33 0.02 250);
    --text: oklch(0.92 0.008 240); --quiet: oklch(0.7 0.018 245); --accent: oklch(0.78 0.11 180);
    --get: oklch(0.78 0.11 180); --post: oklch(0.76 0.11 255); --patch: oklch(0.8 0.11 80); --delete: oklch(0.74 0.14 25);
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 40px; color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--text); font: 14px/20px var(--sans); font-variant-numeric: tabular-nums; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code, pre { font: 13px/20px var(--mono); }
p { margin: 0 0 12px; }
.quiet, .limit { color: var(--quiet); }

.top { position: sticky; top: 0; z-index: 1; display: flex; align-items: center; gap: 12px; height: 48px; padding: 0 24px; background: var(--ground); border-bottom: 1px solid var(--line); }
.brand { font-size: 16px; font-weight: 600; color: var(--text); }
.version { color: var(--quiet); }
.raw { margin-left: auto; }
.to-contents { display: none; }
.key { display: flex; align-items: center; gap: 8px; margin-left: auto; color: var(--quiet); min-width: 0; }
.key[hidden] { display: none; }
.key:not([hidden]) ~ .raw { margin-left: 0; }
.key input { width: 200px; min-width: 0; }
input, textarea, button { font: 13px/20px var(--mono); color: var(--text); background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: 3px 8px; }
button { font-family: var(--sans); font-weight: 500; cursor: pointer; background: var(--raised); }
button:hover { border-color: var(--quiet); }
button:disabled { cursor: default; color: var(--quiet); }

nav { position: fixed; top: 48px; bottom: 0; left: 0; width: 280px; overflow-y: auto; padding: 16px 12px 48px; border-right: 1px solid var(--line); scrollbar-width: thin; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav summary, nav .guide { display: block; padding: 12px 8px 4px; font-weight: 600; color: var(--text); list-style: none; }
nav .guide { padding-top: 4px; }
nav details + .guide { padding-top: 12px; }
nav li a { display: flex; gap: 8px; padding: 4px 8px; border-radius: 6px; color: var(--quiet); }
nav li a:hover { background: var(--raised); color: var(--text); text-decoration: none; }
nav .method { flex: none; width: 48px; }

.method { font: 600 11px/20px var(--mono); }
.get { color: var(--get); } .post { color: var(--post); } .patch, .put { color: var(--patch); } .delete { color: var(--delete); }

main { margin-left: 280px; padding: 32px 24px 96px; max-width: 1280px; }
h1 { margin: 0 0 4px; font-size: 28px; line-height: 36px; letter-spacing: -0.01em; }
h2 { margin: 0 0 4px; font-size: 20px; line-height: 28px; }
h3 { margin: 0 0 4px; font-size: 16px; line-height: 24px; }
h4 { margin: 20px 0 4px; font-size: 13px; line-height: 20px; color: var(--quiet); font-weight: 600; }
.anchor { color: inherit; }
.intro { max-width: 720px; }
.intro h2 { margin-top: 24px; font-size: 16px; line-height: 24px; }
.lead { color: var(--quiet); font-size: 16px; line-height: 24px; }
.group { scroll-margin-top: 24px; margin-top: 64px; padding-bottom: 4px; border-bottom: 1px solid var(--line); }
.group p { color: var(--quiet); }
.endpoint, .record { padding: 32px 0; border-bottom: 1px solid var(--line); }
.endpoint:target > h3, .record:target > h3 { color: var(--accent); }
.route { display: flex; gap: 12px; }
.route code { overflow-wrap: anywhere; }
.route i { font-style: normal; color: var(--accent); }
.route { align-items: flex-start; }
.open { flex: none; margin-left: auto; }
.try { display: grid; gap: 8px; margin: 0 0 20px; padding: 12px; border: 1px solid var(--line); border-radius: 6px; background: var(--raised); }
.try[hidden] { display: none; }
.try label { display: grid; grid-template-columns: 160px minmax(0, 1fr); gap: 8px; align-items: baseline; }
.try label span { font: 13px/20px var(--mono); color: var(--quiet); overflow-wrap: anywhere; }
.try textarea { resize: vertical; }
.try p { display: flex; flex-wrap: wrap; gap: 12px; align-items: baseline; margin: 4px 0 0; }
.try button { order: -1; background: var(--ground); }
.try pre { border-top: 1px solid var(--line); margin: 0 -12px -12px; }
.status { color: var(--quiet); overflow-wrap: anywhere; }
.events th { width: 38%; overflow-wrap: anywhere; padding-right: 12px; }
.events summary { cursor: pointer; color: var(--quiet); font-size: 13px; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 32px; }
.facts > p:first-child { margin: 0; }

table { width: 100%; border-collapse: collapse; }
th, td { padding: 8px 12px 8px 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; font-weight: 400; }
thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.fields th { width: 32%; overflow-wrap: anywhere; }
.depth-1 th { padding-left: 16px; } .depth-2 th { padding-left: 32px; } .depth-3 th { padding-left: 48px; }
.fields td:nth-child(2) { width: 26%; color: var(--quiet); overflow-wrap: anywhere; }
td code { padding: 0 4px; border-radius: 4px; background: var(--raised); }
.required { display: block; color: var(--patch); font-size: 12px; line-height: 16px; }
.or { margin: 8px 0; color: var(--quiet); }
.answers { margin: 0; padding: 8px 0; list-style: none; border-top: 1px solid var(--line); }
.errors { margin-top: 16px; }
.errors summary { cursor: pointer; color: var(--quiet); font-size: 13px; font-weight: 600; }
.errors table { margin-top: 8px; }
.errors th { width: 56px; font-weight: 600; }

figure { margin: 0 0 16px; border: 1px solid var(--line); border-radius: 6px; background: var(--raised); }
figcaption { padding: 6px 12px; border-bottom: 1px solid var(--line); color: var(--quiet); font-size: 12px; line-height: 20px; }
pre { margin: 0; padding: 12px; max-height: 440px; overflow: auto; scrollbar-width: thin; white-space: pre-wrap; overflow-wrap: anywhere; }

@media (min-width: 821px) {
  nav details::details-content { content-visibility: visible; block-size: auto; }
  nav summary { pointer-events: none; }
}
@media (max-width: 1180px) { .columns { grid-template-columns: minmax(0, 1fr); gap: 20px; } }
@media (max-width: 820px) {
  .top { padding: 0 16px; }
  .to-contents { display: inline; margin-left: auto; }
  .raw { margin-left: 0; }
  nav { position: static; width: auto; padding: 8px 16px; border-right: 0; border-bottom: 1px solid var(--line); scroll-margin-top: 48px; }
  nav summary, nav .guide, nav details + .guide { padding: 8px; cursor: pointer; font-weight: 500; }
  nav summary::before { content: "+"; display: inline-block; width: 16px; color: var(--quiet); }
  nav details[open] summary::before { content: "−"; }
  nav .guide, nav details + .guide { padding-left: 24px; }
  main { margin-left: 0; padding: 24px 16px 64px; }
  .group { margin-top: 48px; }
  .fields, .fields tbody, .fields tr, .fields th, .fields td { display: block; width: auto; }
  .fields tr { padding: 8px 0; border-top: 1px solid var(--line); }
  .fields th, .fields td, .fields td:nth-child(2) { padding: 0; border: 0; width: auto; }
  .fields .depth-1 { padding-left: 16px; } .fields .depth-2 { padding-left: 32px; } .fields .depth-3 { padding-left: 48px; }
  .try label { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .key input { width: 120px; }
  .key span, .version { display: none; }
  .key { margin-left: auto; } .key:not([hidden]) ~ .to-contents { margin-left: 0; }
  .events th, .events td { display: block; width: auto; padding: 4px 0; }
  .events td { border: 0; padding-top: 0; }
  .required { display: inline; margin-left: 4px; }
}
`
