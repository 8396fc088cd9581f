import type { MetricSeries, VmType } from '@slipway/sdk'

export const ranges = {
  '1h': { label: 'Last hour', seconds: 3_600, step: 60 },
  '24h': { label: 'Last 24 hours', seconds: 86_400, step: 300 },
  '15d': { label: 'Last 15 days', seconds: 15 * 86_400, step: 3_600 },
} as const
export type RangeName = keyof typeof ranges

type Value = number | null

/** The lines of one chart. A line has a value for each time, and null where there is a gap. */
export interface ChartLines {
  title: string
  unit: string
  /** The axis reaches at least this value. By default, it fits the values. */
  top?: number
  times: number[]
  lines: { label: string; values: Value[] }[]
}

/** What a VM of a type has of each resource. */
type Capacity = Pick<VmType, 'cpuCores' | 'memoryGb' | 'gpuMemoryGb'>

interface ChartSpec {
  title: string
  /** The metrics of the chart, and the labels of their lines. GPU metrics have a line for each GPU. */
  metrics: Record<string, string>
  unit: string
  /** Converts a value from the API to the unit. */
  factor?: number
  isCounter?: boolean
  /** Large values are shown in larger units, such as MB/s. */
  isBytes?: boolean
  top?: number | keyof Capacity
}

const MiB = 1024 ** 2
const specs: ChartSpec[] = [
  { title: 'GPU usage', metrics: { DCGM_FI_DEV_GPU_UTIL: '' }, unit: '%', top: 100 },
  {
    title: 'GPU memory',
    metrics: { DCGM_FI_DEV_FB_USED: '' },
    unit: 'GiB',
    factor: 1 / 1024,
    top: 'gpuMemoryGb',
  },
  { title: 'GPU power', metrics: { DCGM_FI_DEV_POWER_USAGE: '' }, unit: 'W' },
  { title: 'GPU temperature', metrics: { DCGM_FI_DEV_GPU_TEMP: '' }, unit: '°C', top: 100 },
  {
    title: 'CPU',
    metrics: { slipway_vm_cpu_seconds_total: 'used' },
    unit: 'cores',
    isCounter: true,
    top: 'cpuCores',
  },
  {
    title: 'Memory',
    metrics: { slipway_vm_memory_bytes: 'used' },
    unit: 'GiB',
    factor: 1 / (1024 * MiB),
    top: 'memoryGb',
  },
  {
    title: 'Network',
    metrics: {
      slipway_vm_network_receive_bytes_total: 'received',
      slipway_vm_network_transmit_bytes_total: 'sent',
    },
    ...{ unit: 'B/s', isCounter: true, isBytes: true },
  },
  {
    title: 'Disk',
    metrics: { slipway_vm_disk_read_bytes_total: 'read', slipway_vm_disk_written_bytes_total: 'written' },
    ...{ unit: 'B/s', isCounter: true, isBytes: true },
  },
]

export const metricNames = specs.flatMap(({ metrics }) => Object.keys(metrics))

/** Returns the charts that have values. The capacity is not known if the VM's type no longer exists. */
export const chartsOf = (series: MetricSeries[], capacity: Capacity | undefined): ChartLines[] =>
  specs.flatMap((spec) => {
    const found = series.filter(({ name }) => name in spec.metrics)
    return found.length > 0 ? [chartOf(spec, found, capacity)] : []
  })

function chartOf(
  { title, metrics, unit, factor = 1, isCounter, isBytes, top: wanted }: ChartSpec,
  found: MetricSeries[],
  capacity: Capacity | undefined,
) {
  const top = typeof wanted === 'string' ? capacity?.[wanted] : wanted
  const lines = found.map(({ name, labels, points }) => ({
    label: metrics[name] || `GPU ${labels.gpu}`,
    values: (isCounter ? ratesOf(points) : points.map(([, value]) => value)).map(scaleBy(factor)),
  }))
  const chart = { title, unit, times: found[0]!.points.map(([time]) => time), lines, ...(top && { top }) }
  return isBytes ? withByteUnit(chart) : chart
}

const scaleBy = (factor: number) => (value: Value) => (value === null ? null : value * factor)

/** Returns the increase of a counter per second; null after a gap or a counter reset. */
function ratesOf(points: [number, Value][]): Value[] {
  return points.map(([time, value], index) => {
    const [timeBefore, before] = points[index - 1] ?? [0, null]
    return value === null || before === null || value < before ? null : (value - before) / (time - timeBefore)
  })
}

function withByteUnit(chart: ChartLines): ChartLines {
  const highest = Math.max(0, ...chart.lines.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const power = highest < 1e3 ? 0 : highest < 1e6 ? 1 : highest < 1e9 ? 2 : 3
  return {
    ...chart,
    unit: ['B/s', 'kB/s', 'MB/s', 'GB/s'][power]!,
    lines: chart.lines.map(({ label, values }) => ({ label, values: values.map(scaleBy(1000 ** -power)) })),
  }
}

/** Returns a value with its unit: "691.7 W". */
export const valueText = (value: Value | undefined, unit: string): string =>
  value === null || value === undefined
    ? 'no value'
    : `${value.toLocaleString(undefined, { maximumFractionDigits: value < 10 ? 2 : 1 })}${unit === '%' ? '' : ' '}${unit === 'cores' && value === 1 ? 'core' : unit}`
