import { gpuMetricNames, hostMetricNames, vmMetrics } from '@slipway/contract'
import { gpuLabels } from '../domain/guest/samples.ts'
import type { LatestSample } from '../store/metrics/samples.ts'

/** Returns the latest samples in the text format of Prometheus or OpenMetrics. */
export function metricsText(vms: LatestSample[], isOpenMetrics: boolean): string {
  const lines: string[] = []
  const add = (name: string, type: string, help: string, samples: string[]) => {
    if (samples.length === 0) return
    // In OpenMetrics, the name of a counter family does not have the suffix of its samples.
    const family = isOpenMetrics && type === 'counter' ? name.replace(/_total$/, '') : name
    lines.push(`# HELP ${family} ${help}`, `# TYPE ${family} ${type}`, ...samples)
  }
  add(
    'slipway_vm_state',
    'gauge',
    'The state of a VM: 1 for its present state.',
    vms.map(({ vm_id, name, state }) => line('slipway_vm_state', { vm_id, Hostname: name, state }, 1)),
  )
  hostMetricNames.forEach((metric, i) => {
    const samples = vms.flatMap(({ vm_id, name, data }) =>
      lineIf(metric, { vm_id, Hostname: name }, data?.h[i]),
    )
    add(metric, vmMetrics[metric]!.type, vmMetrics[metric]!.help, samples)
  })
  gpuMetricNames.forEach((metric, i) => {
    const samples = vms.flatMap(({ vm_id, name, gpus, data }) =>
      (data?.g ?? []).flatMap((values, gpu) => {
        const labels = gpuLabels({ vmId: vm_id, name, gpus: gpus ?? [] }, gpu)
        return lineIf(metric, { ...labels, Hostname: name, vm_id }, values[i])
      }),
    )
    add(metric, vmMetrics[metric]!.type, vmMetrics[metric]!.help, samples)
  })
  add(
    'slipway_gpu_xid_total',
    'counter',
    'XID errors of the GPUs of a VM.',
    vms.flatMap(({ vm_id, name, xids }) =>
      Object.entries(xids ?? {}).map(([xid, count]) =>
        line('slipway_gpu_xid_total', { vm_id, Hostname: name, xid }, count),
      ),
    ),
  )
  if (isOpenMetrics) lines.push('# EOF')
  return `${lines.join('\n')}\n`
}

const lineIf = (metric: string, labels: Record<string, string>, value: number | null | undefined) =>
  value === null || value === undefined ? [] : [line(metric, labels, value)]

function line(metric: string, labels: Record<string, string>, value: number): string {
  const shown = Object.entries(labels).map(([name, text]) => `${name}="${text.replace(/["\\\n]/g, '\\$&')}"`)
  return `${metric}{${shown.join(',')}} ${value}`
}
