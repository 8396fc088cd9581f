import type { MetricSeries } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { type Column, printList } from '../../output/print.ts'
import { vms } from './resource.ts'

const valuesOf = ({ points }: MetricSeries) => points.flatMap(([, value]) => (value === null ? [] : [value]))
const formatNumber = (value: number | undefined) =>
  value === undefined ? '' : value.toLocaleString('en-US', { maximumFractionDigits: 2 })

const columns: Column<MetricSeries>[] = [
  { name: 'name', value: ({ name }) => name },
  { name: 'gpu', value: ({ labels }) => labels.gpu ?? '' },
  { name: 'latest', value: (series) => formatNumber(valuesOf(series).at(-1)), align: 'right' },
  {
    name: 'lowest',
    value: (series) => formatNumber(valuesOf(series).toSorted((a, b) => a - b)[0]),
    align: 'right',
    hideOrder: 2,
  },
  {
    name: 'highest',
    value: (series) => formatNumber(valuesOf(series).toSorted((a, b) => b - a)[0]),
    align: 'right',
    hideOrder: 1,
  },
  { name: 'unit', value: ({ unit }) => unit },
]

export const vmMetrics = command<{ ref: string; since?: number; step?: number; metric?: string }>({
  name: 'metrics',
  summary: 'show CPU, memory, disk, network and GPU metrics of a VM',
  details:
    'Values are kept for 24 hours at intervals of 60 seconds, and for 15 days at intervals of 5 minutes. GPU metrics need an image with the tag `slipway-guest`. With `-o json`, every point is printed.',
  arguments: [refArgument(vms)],
  options: [
    { flags: '--since <duration>', description: 'time range to show (default: 1h)', parse: parseDurationMs },
    {
      flags: '--step <duration>',
      description: 'time between two points, at least 60s',
      parse: parseDurationMs,
    },
    { flags: '--metric <names>', description: 'only these metrics, separated by commas' },
  ],
  examples: [
    'slipway vm metrics train-7',
    'slipway vm metrics train-7 --since 24h --metric DCGM_FI_DEV_GPU_UTIL -o json',
  ],
  async run(cli, { ref, since, step, metric }) {
    const target = { project_id: await cli.project(), vm_id: await idOf(cli, vms, ref) }
    const { items } = await cli.client.vmMetrics({
      ...target,
      names: metric,
      start: since === undefined ? undefined : new Date(Date.now() - since).toISOString(),
      step: step === undefined ? undefined : Math.round(step / 1000),
    })
    await printList(cli, items, columns, ['name', 'unit', 'labels', 'points'])
  },
})
