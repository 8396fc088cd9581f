import type { VmSample } from '../engine.ts'
import { asCompleted } from './as-completed.ts'
import type { IncusContext } from './context.ts'
import type { MemberList } from './fleet/members.ts'
import { vmIdOf } from './instances.ts'

/** Long, because Incus measures its guests during the request. It then caches the result for 8 seconds. */
const requestMs = 30_000
const membersAtOnce = 4

/**
 * Reads the metrics of each member's guests, with one request per member. A member that does not respond is
 * omitted, and delays no other.
 */
export async function* sampleInstances(
  { client, config }: IncusContext,
  { members, isCluster }: MemberList,
  signal: AbortSignal,
): AsyncIterable<VmSample> {
  const responding = members.filter(({ status }) => status === 'Online' || status === 'Evacuated')
  // A server that ignores `target` returns its own guests each time.
  const known = new Set<string>()
  const texts = asCompleted(responding, membersAtOnce, ({ name }) =>
    client
      .text('/1.0/metrics', {
        signal,
        query: { project: config.project, ...(isCluster && { target: name }) },
        timeoutMs: requestMs,
      })
      .catch(() => Buffer.alloc(0)),
  )
  for await (const text of texts) {
    signal.throwIfAborted()
    for (const sample of parseMetrics(text.toString('utf8'))) {
      if (known.has(sample.vmId)) continue
      known.add(sample.vmId)
      yield sample
    }
  }
}

const line = /^(incus_\w+)\{([^}]*)\} (\S+)$/
const label = (labels: string, name: string) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? ''

interface Sums {
  cpuSeconds?: number
  memoryTotal?: number
  memoryAvailable?: number
  diskRead?: number
  diskWritten?: number
  received?: number
  sent?: number
}

const sums: Record<string, keyof Sums> = {
  incus_cpu_seconds_total: 'cpuSeconds',
  incus_memory_MemTotal_bytes: 'memoryTotal',
  incus_memory_MemAvailable_bytes: 'memoryAvailable',
  incus_disk_read_bytes_total: 'diskRead',
  incus_disk_written_bytes_total: 'diskWritten',
  incus_network_receive_bytes_total: 'received',
  incus_network_transmit_bytes_total: 'sent',
}

/** Adds up the values of each guest, without idle CPU time and the loopback interface. */
export function parseMetrics(text: string): VmSample[] {
  const byVm = new Map<string, Sums>()
  for (const each of text.split('\n')) {
    const [, name = '', labels = '', shown = ''] = line.exec(each) ?? []
    const sum = sums[name]
    const vmId = vmIdOf(label(labels, 'name'))
    const value = Number(shown)
    if (!sum || !vmId || !Number.isFinite(value)) continue
    if (name === 'incus_cpu_seconds_total' && /^(idle|iowait)$/.test(label(labels, 'mode'))) continue
    if (name.startsWith('incus_network_') && label(labels, 'device') === 'lo') continue
    const known = byVm.get(vmId) ?? {}
    known[sum] = (known[sum] ?? 0) + value
    byVm.set(vmId, known)
  }
  return [...byVm].map(([vmId, sum]) => ({ vmId, host: hostValues(sum), guest: null }))
}

function hostValues(sum: Sums): VmSample['host'] {
  const { memoryTotal, memoryAvailable } = sum
  const values = {
    slipway_vm_cpu_seconds_total: sum.cpuSeconds,
    slipway_vm_memory_bytes:
      memoryTotal !== undefined && memoryAvailable !== undefined ? memoryTotal - memoryAvailable : undefined,
    slipway_vm_disk_read_bytes_total: sum.diskRead,
    slipway_vm_disk_written_bytes_total: sum.diskWritten,
    slipway_vm_network_receive_bytes_total: sum.received,
    slipway_vm_network_transmit_bytes_total: sum.sent,
  }
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}
