import { type Aim, type Figure, formatNumber, groups, inOrder } from '../figures.ts'
import type { GrowRun, Pair, Results, Run, ServiceRun } from '../results.ts'
import { style } from './style.ts'

const escaped = (text: string): string => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`)

const verdicts = {
  met: { icon: '●', word: 'met' },
  missed: { icon: '■', word: 'missed' },
  open: { icon: '○', word: 'unknown' },
}
const verdictOf = ({ isMet }: Aim) => (isMet === null ? 'open' : isMet ? 'met' : 'missed')

function badge(aim: Aim): string {
  const name = verdictOf(aim)
  const { icon, word } = verdicts[name]
  return `<span class="badge ${name}"><i aria-hidden="true">${icon}</i> ${word}</span>`
}

/** All bars share a scale. A bar that would dwarf the others is cut off and marked. */
function bar(name: string, value: number, unit: string, scale: number, kind: string, note = ''): string {
  const isCut = value > scale
  const width = Math.max(0.4, (Math.min(value, scale) / scale) * 100)
  return `<div class="name ${kind}">${escaped(name)}</div>
<div class="track"><div class="bar ${kind}${isCut ? ' cut' : ''}" style="width:${width.toFixed(2)}%"></div></div>
<div class="number">${formatNumber(value)} ${unit}</div><div class="note">${note}</div>`
}

function card(figure: Figure): string {
  const { what, value, unit, aim, limits = [], cpu, more = {} } = figure
  const near = Math.max(value, aim?.at ?? 0)
  const scale =
    Math.max(near, ...limits.map((baseline) => baseline.value).filter((each) => each <= near * 8)) * 1.02
  const tick =
    aim?.at === undefined
      ? ''
      : `<div class="aim" style="--at:${((aim.at / scale) * 100).toFixed(2)}%" title="target"></div>`
  const rows = limits.map(({ what, value, ratio }) =>
    bar(what, value, unit, scale, 'baseline', ratio === null ? 'client-bound' : `× ${ratio.toPrecision(2)}`),
  )
  const facts = [
    ...(cpu
      ? [
          `CPU: server ${formatNumber(cpu.serverMs)} ms`,
          `PostgreSQL ${formatNumber(cpu.postgresMs)} ms`,
          `load ${cpu.loadCores.toFixed(2)} cores`,
        ]
      : []),
    ...Object.entries(more).map(([name, n]) => `${name} ${formatNumber(n)}`),
  ]
  return `<article>
<header><h3>${escaped(what)}</h3>${aim ? `<p class="wanted">target ${escaped(aim.text)} ${badge(aim)}</p>` : ''}</header>
<div class="bars">${tick}${bar('Slipway', value, unit, scale, 'own')}${rows.join('')}</div>
${facts.length > 0 ? `<p class="facts">${facts.map((fact) => `<span>${escaped(fact)}</span>`).join('')}</p>` : ''}
</article>`
}

function serviceSections({ figures }: ServiceRun): string {
  return inOrder(figures)
    .map(([group, all]) => `<section><h2>${groups[group]}</h2>${all.map(card).join('')}</section>`)
    .join('')
}

function growSection({ scale, rows, fillSeconds, sizeGb, pairs }: GrowRun): string {
  const counts = Object.entries(rows).map(([table, n]) => `${n.toLocaleString('en')} ${table}`)
  const most = Math.max(1.3, ...pairs.map(({ factor }) => factor)) * 1.05
  const row = ({ small, grown, factor }: Pair) => `<tr><td>${escaped(small.what)}</td>
<td class="figure">${formatNumber(small.value)} ${small.unit}</td><td class="figure">${formatNumber(grown.value)} ${grown.unit}</td>
<td class="plot"><div class="track"><div class="bar ${factor <= 1.3 ? 'own' : 'over'}" style="width:${((factor / most) * 100).toFixed(1)}%"></div>
<div class="aim" style="--at:${((1.3 / most) * 100).toFixed(1)}%"></div></div></td><td class="figure">${factor.toFixed(2)}</td>
<td>${badge({ text: '', isMet: factor <= 1.3 })}</td></tr>`
  return `<section><h2>Growth</h2><p>The same work on a database with ${counts.join(', ')} (scale ${scale}; filled in
${fillSeconds.toFixed(0)} s, ${sizeGb.toFixed(1)} GB), compared with a small database in the same run. The target is a factor of at most 1.3.</p>
<table><thead><tr><th>work</th><th class="figure">small</th><th class="figure">grown</th><th>factor</th><th></th><th></th></tr></thead>
<tbody>${pairs.map(row).join('')}</tbody></table></section>`
}

function facts({ at, machine, reader, isQuick }: Run): string {
  const { cpu, cores, memoryGb, kernel, node, postgres } = machine
  const all: [string, string][] = [
    ['Machine', `${cores} cores, ${cpu || 'unknown CPU'}, ${memoryGb} GB`],
    ['Software', `Linux ${kernel}, Node ${node}, PostgreSQL ${postgres}, fsync on`],
    ['Client for reads', reader],
    ['Measured', `${at.slice(0, 16).replace('T', ' ')} UTC${isQuick ? ', quick run' : ''}`],
  ]
  return `<dl>${all.map(([name, text]) => `<dt>${name}</dt><dd>${escaped(text)}</dd>`).join('')}</dl>`
}

function summary({ figures }: ServiceRun): string {
  const aims = Object.values(figures).flatMap((all) => all.flatMap(({ aim }) => (aim ? [aim] : [])))
  const met = aims.filter(({ isMet }) => isMet).length
  return `<p class="summary"><strong>${met}</strong> of ${aims.length} targets met</p>`
}

/** Returns the whole page, without scripts or external resources. */
export function pageOf({ service, grow }: Results): string {
  const run = service ?? grow
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Slipway: measured speed</title><style>${style}</style></head>
<body><main><h1>Measured speed</h1>
<p class="lead">Each figure is shown with baselines measured in the same run on the same machine, such as the speed of a
bare route, a bare transaction or pgbench. A vertical line marks the target.</p>
${service ? summary(service) : ''}${run ? facts(run) : ''}
${service ? serviceSections(service) : ''}${grow ? growSection(grow) : ''}
</main></body></html>
`
}
