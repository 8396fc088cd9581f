export const groups = {
  reads: 'Reads',
  changes: 'Creations and deletions',
  waiting: 'Capacity queue',
  groups: 'Instance groups',
  streams: 'Event streams',
  processes: 'More API processes',
  starts: 'Start and memory',
}
export type Group = keyof typeof groups

/** Returns the figures by group, in the order of `groups`. */
export const inOrder = (figures: Partial<Record<Group, Figure[]>>): [Group, Figure[]][] =>
  (Object.keys(groups) as Group[]).flatMap((group) => (figures[group] ? [[group, figures[group]]] : []))

/** One measured number, with the baselines that it is compared with. */
export interface Figure {
  /** The id is the same in every run and for every database. */
  id: string
  what: string
  value: number
  unit: '/s' | 'ms' | 'MB' | 's'
  aim?: Aim | undefined
  /** The baselines. The name is that of the member in artifacts/bench.json. */
  limits?: Baseline[]
  cpu?: Cpu | undefined
  /** Additional numbers of the same measurement, by name. */
  more?: Record<string, number>
}

export interface Aim {
  text: string
  /** Null if it could not be determined. */
  isMet: boolean | null
  /** The target value in the figure's unit. */
  at?: number
}

/** A value for comparison, measured in the same run. A figure can be better than its baseline. */
export interface Baseline {
  what: string
  value: number
  /** The figure divided by the baseline; null if the load generator limited either of them. */
  ratio: number | null
}

export interface Cpu {
  /** Milliseconds per request, or per unit of work. */
  serverMs: number
  postgresMs: number
  /** The number of cores that the load generator used. */
  loadCores: number
}

/** Above this load, the measurement shows the speed of the load generator instead of the service. */
export const isBusy = (loadCores: number): boolean => loadCores >= 0.95

export const atLeast = (value: number, least: number, unit: string): Aim => ({
  text: `≥ ${least.toLocaleString('en')} ${unit}`,
  isMet: value >= least,
  at: least,
})

export const atMost = (value: number, most: number, unit: string): Aim => ({
  text: `≤ ${most.toLocaleString('en')} ${unit}`,
  isMet: value <= most,
  at: most,
})

export const ratioAtLeast = ({ ratio, value }: Baseline, least: number, of: string): Aim => ({
  text: `≥ ${least} × the ${of}`,
  isMet: ratio === null ? null : ratio >= least,
  at: least * value,
})

/** Combines the figure's own target with an additional one. */
export function both(own: Aim, other: Aim): Aim {
  const verdicts = [own.isMet, other.isMet]
  const isMet = verdicts.includes(false) ? false : verdicts.includes(null) ? null : true
  return { ...own, text: `${own.text}, ${other.text}`, isMet }
}

export const percentile = (sorted: number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

export function median(numbers: number[]): number {
  return percentile(
    numbers.toSorted((one, other) => one - other),
    0.5,
  )
}

export const formatNumber = (n: number): string =>
  n >= 100
    ? Math.round(n).toLocaleString('en')
    : n >= 10
      ? n.toFixed(1)
      : n >= 1
        ? n.toFixed(2)
        : n.toFixed(3)

const verdict = (aim: Aim | undefined): string =>
  aim ? `  [${aim.text}: ${aim.isMet === null ? 'unknown' : aim.isMet ? 'met' : 'MISSED'}]` : ''

/** Prints a line for the figure and one for each of its baselines. */
export function print(figure: Figure): void {
  const { what, value, unit, aim, limits = [], cpu, more = {} } = figure
  console.log(`${what.padEnd(56)} ${formatNumber(value).padStart(9)} ${unit.padEnd(2)}${verdict(aim)}`)
  const line = (text: string) => console.log(`    ${text}`)
  for (const baseline of limits) {
    const ratio =
      baseline.ratio === null
        ? 'no ratio: the load generator used a full core'
        : `ratio ${baseline.ratio.toPrecision(2)}`
    line(
      `${baseline.what.padEnd(52)} ${formatNumber(baseline.value).padStart(9)} ${unit.padEnd(2)}  ${ratio}`,
    )
  }
  if (cpu)
    line(
      `CPU: server ${formatNumber(cpu.serverMs)} ms, PostgreSQL ${formatNumber(cpu.postgresMs)} ms each; load ${cpu.loadCores.toFixed(2)} cores`,
    )
  const rest = Object.entries(more).map(([name, n]) => `${name} ${formatNumber(n)}`)
  if (rest.length > 0) line(rest.join(', '))
}
