import Type, { type Static } from 'typebox'
import { defineRoutes } from '../route.ts'
import { CommaList, Instant, record } from '../schema.ts'

interface VmMetric {
  type: 'counter' | 'gauge'
  unit: string
  help: string
}

/** Metrics that engines measure outside the guest, in the order in which samples store them. */
export const hostMetrics = {
  slipway_vm_cpu_seconds_total: { type: 'counter', unit: 'seconds', help: 'CPU time of the VM.' },
  slipway_vm_memory_bytes: { type: 'gauge', unit: 'bytes', help: 'Host memory that the VM uses.' },
  slipway_vm_disk_read_bytes_total: { type: 'counter', unit: 'bytes', help: 'Bytes read from disks.' },
  slipway_vm_disk_written_bytes_total: { type: 'counter', unit: 'bytes', help: 'Bytes written to disks.' },
  slipway_vm_network_receive_bytes_total: {
    type: 'counter',
    unit: 'bytes',
    help: 'Bytes that the VM received.',
  },
  slipway_vm_network_transmit_bytes_total: {
    type: 'counter',
    unit: 'bytes',
    help: 'Bytes that the VM sent.',
  },
  slipway_vm_ssh_sessions: {
    type: 'gauge',
    unit: 'sessions',
    help: 'Open SSH sessions, as the guest reports them.',
  },
} as const satisfies Record<string, VmMetric>

/** Metrics that the guest reports for each GPU, with the names of NVIDIA's exporter, in the stored order. */
export const gpuMetrics = {
  DCGM_FI_DEV_GPU_UTIL: { type: 'gauge', unit: 'percent', help: 'GPU utilization.' },
  DCGM_FI_DEV_FB_USED: { type: 'gauge', unit: 'MiB', help: 'Used GPU memory in MiB.' },
  DCGM_FI_DEV_FB_FREE: { type: 'gauge', unit: 'MiB', help: 'Free GPU memory in MiB.' },
  DCGM_FI_DEV_GPU_TEMP: { type: 'gauge', unit: 'celsius', help: 'GPU temperature.' },
  DCGM_FI_DEV_POWER_USAGE: { type: 'gauge', unit: 'watts', help: 'Power draw.' },
  DCGM_FI_DEV_SM_CLOCK: { type: 'gauge', unit: 'MHz', help: 'Clock of the streaming multiprocessors.' },
  DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS: {
    type: 'gauge',
    unit: 'rows',
    help: 'Memory rows that were remapped after uncorrectable errors.',
  },
  DCGM_FI_DEV_ROW_REMAP_FAILURE: {
    type: 'gauge',
    unit: 'boolean',
    help: 'Whether remapping of memory rows has failed: 0 or 1.',
  },
} as const satisfies Record<string, VmMetric>

export const hostMetricNames = Object.keys(hostMetrics) as (keyof typeof hostMetrics)[]
export const gpuMetricNames = Object.keys(gpuMetrics) as (keyof typeof gpuMetrics)[]
export const vmMetrics: Record<string, VmMetric> = { ...hostMetrics, ...gpuMetrics }

export const sampleSeconds = 60
export const coarseSampleSeconds = 300
export const maxMetricPoints = 11_000
export const maxMetricVms = 100

const range = {
  names: CommaList('Metrics', [...hostMetricNames, ...gpuMetricNames]),
  start: Type.Optional(Type.String({ ...Instant, description: 'The default is one hour before the end.' })),
  end: Type.Optional(Type.String({ ...Instant, description: 'The default is now.' })),
  step: Type.Optional(
    Type.Integer({
      minimum: sampleSeconds,
      maximum: 86_400,
      description:
        'Seconds between two points, at least 60. The default is 60 for the last 24 hours, and 300 for older points.',
    }),
  ),
}

/** OpenAPI describes the items of a tuple differently from TypeBox. */
const Point = Type.Unsafe<[number, number | null]>({
  type: 'array',
  minItems: 2,
  maxItems: 2,
  prefixItems: [{ type: 'number' }, { anyOf: [{ type: 'number' }, { type: 'null' }] }],
  items: { anyOf: [{ type: 'number' }, { type: 'null' }] },
})

const MetricSeries = record('MetricSeries', {
  name: Type.String(),
  unit: Type.String(),
  labels: Type.Record(Type.String(), Type.String(), {
    description: 'The VM (`vm_id`, `Hostname`), and for a GPU `gpu`, `UUID` and `modelName`.',
  }),
  points: Type.Array(Point, {
    description: 'Pairs of a time, in seconds since 1970, and a value, or null if there is no value.',
  }),
})
export type MetricSeries = Static<typeof MetricSeries>

const MetricRange = record('MetricRange', {
  items: Type.Array(MetricSeries),
  step_seconds: Type.Integer(),
})
export type MetricRange = Static<typeof MetricRange>

const metricsDescription =
  'Values are kept for 24 hours at intervals of 60 seconds, and for 15 days at intervals of 300 seconds. If a point covers several samples, its value is their mean; for a counter, it is the highest value. GPU values and SSH sessions come from the guest, if its image has the tag `slipway-guest`.'

export const metricRoutes = defineRoutes({
  vmMetrics: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/vms/{vm_id}/metrics',
    tag: 'VMs',
    summary: 'Read the metrics of a VM',
    description: metricsDescription,
    access: 'viewer',
    query: Type.Object(range),
    response: MetricRange,
  },
  projectMetrics: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/metrics',
    tag: 'VMs',
    summary: 'Read the metrics of several VMs',
    description: `Up to ${maxMetricVms} VMs. ${metricsDescription}`,
    access: 'viewer',
    query: Type.Object({
      vm_ids: Type.String({ maxLength: 4_000, description: 'Comma-separated VM ids.' }),
      ...range,
    }),
    response: MetricRange,
  },
  projectMetricsScrape: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/metrics/scrape',
    tag: 'VMs',
    summary: 'Read current metrics in the Prometheus format',
    description:
      'The latest values of all running VMs of the project. GPU metrics have the names and labels of NVIDIA’s exporter (DCGM), so existing dashboards work. The format is OpenMetrics if `Accept` requests it. Each caller can make at most 10 requests a minute.',
    access: 'viewer',
    isText: true,
    response: Type.String(),
  },
})
