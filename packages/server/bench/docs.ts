/** Writes the tables of docs/performance.md from artifacts/bench.json, between the markers in the page. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '@slipway/testing/root.ts'
import { type Aim, type Figure, formatNumber, groups, inOrder } from './figures.ts'
import { type GrowRun, type Machine, readResults, type ServiceRun } from './results.ts'

/**
 * Other software, measured on a similar machine with its own tools. `npm run bench` does not repeat these
 * measurements.
 */
const peers = [
  { what: 'GET of one VM, per second', figure: 'get-vm-16', nova: [50, 57], incus: [730, 886] },
  { what: 'Creations to running, per second', figure: 'creations', nova: [1.4, 1.8], incus: [40, 48] },
] as const

const { service, grow } = readResults()
if (!service || service.isQuick)
  throw new Error('artifacts/bench.json has no complete run; run `npm run bench` first')

const path = join(root, 'docs/performance.md')
let page = readFileSync(path, 'utf8')
put('machine', machineLine(service.at, service.machine))
put('peers', peerTable(service))
put('figures', figureTables(service))
put('growth', grow ? growTable(grow) : 'Not measured yet.')
writeFileSync(path, page)
console.log('docs/performance.md was written')

function put(name: string, text: string): void {
  const marked = new RegExp(`(<!-- ${name} -->\n)[^]*?(\n<!-- /${name} -->)`)
  if (!marked.test(page)) throw new Error(`docs/performance.md has no marker for ${name}`)
  page = page.replace(marked, (_, open, close) => `${open}\n${text}\n${close}`)
}

function machineLine(at: string, { cpu, cores, memoryGb, kernel, node, postgres }: Machine): string {
  const software = `Linux ${kernel}, Node ${node}, embedded PostgreSQL ${postgres} with fsync`
  return `${cores} cores (${cpu || 'unknown CPU'}), ${memoryGb} GB of memory; ${software}. Measured on ${at.slice(0, 10)}.`
}

function table(head: string[], rows: string[][]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function peerTable({ figures }: ServiceRun): string {
  const all = Object.values(figures).flat()
  const times = (ours: number, [least, most]: readonly [number, number]) =>
    `${least}–${most} (${formatNumber(ours / most)} times)`
  return table(
    ['work', 'Slipway', 'OpenStack Nova 26, fake driver', 'Incus 6.0.4'],
    peers.flatMap(({ what, figure, nova, incus }) => {
      const ours = all.find(({ id }) => id === figure)?.value
      return ours === undefined ? [] : [[what, formatNumber(ours), times(ours, nova), times(ours, incus)]]
    }),
  )
}

function verdictOf(aim: Aim | undefined): string {
  return aim ? `${aim.text}: ${aim.isMet === null ? 'unknown' : aim.isMet ? 'met' : '**missed**'}` : ''
}

function figureTables({ figures }: ServiceRun): string {
  const row = ({ what, value, unit, aim, limits = [], cpu }: Figure) => [
    what,
    `${formatNumber(value)} ${unit}`,
    verdictOf(aim),
    limits
      .map((baseline) => {
        const ratio = baseline.ratio === null ? 'client-bound' : baseline.ratio.toPrecision(2)
        return `${baseline.what}: ${formatNumber(baseline.value)} (${ratio})`
      })
      .join('; '),
    cpu ? `${formatNumber(cpu.serverMs)} + ${formatNumber(cpu.postgresMs)}` : '',
  ]
  return inOrder(figures)
    .map(([group, all]) => {
      const head = [
        'work',
        'measured',
        'target',
        'baselines of the same run (ratio)',
        'CPU ms, server + PostgreSQL',
      ]
      return `### ${groups[group]}\n\n${table(head, all.map(row))}`
    })
    .join('\n\n')
}

function growTable({ scale, rows, pairs, sizeGb, fillSeconds, isQuick }: GrowRun): string {
  const counts = Object.entries(rows).map(([name, count]) => `${count.toLocaleString('en')} ${name}`)
  const description = `Scale ${scale}: ${counts.join(', ')}; ${sizeGb.toFixed(1)} GB, filled in ${fillSeconds.toFixed(0)} s${isQuick ? '; quick measurement' : ''}.`
  const body = pairs.map(({ small, grown, factor }) => [
    small.what,
    `${formatNumber(small.value)} ${small.unit}`,
    `${formatNumber(grown.value)} ${grown.unit}`,
    `${factor.toFixed(2)}${factor > 1.3 ? ' **(target 1.3)**' : ''}`,
  ])
  return `${description}\n\n${table(['work', 'small store', 'grown store', 'factor'], body)}`
}
