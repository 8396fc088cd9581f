import { readFile } from 'node:fs/promises'
import { type GuestReport, maxReportBytes, parseGuestReport } from '../../domain/guest/report.ts'
import type { VmSample } from '../engine.ts'
import type { QemuContext } from './context.ts'
import type { VmForwards } from './forwarder/protocol.ts'
import { observe } from './observe.ts'
import { vmSocket } from './paths.ts'
import { guestRing } from './process/machine.ts'
import type { ProcessIdentity } from './process/process.ts'
import { QmpError, withQmp } from './process/qmp.ts'

const ticksPerSecond = 100

/** Measures the running VMs of this machine. A VM that cannot be measured at the moment is omitted. */
export async function* sampleVms(ctx: QemuContext, signal: AbortSignal): AsyncIterable<VmSample> {
  const forwarder = await ctx.forwarder.status().catch(() => ({ vms: {} as Record<string, VmForwards> }))
  for (const id of await ctx.records.ids()) {
    signal.throwIfAborted()
    const seen = await observe(ctx, id)
    if (!seen?.process || seen.power !== 'running') continue
    const sample = await sampleVm(ctx, id, seen.process, forwarder.vms[id]).catch(() => null)
    if (sample) yield sample
  }
}

async function sampleVm(
  ctx: QemuContext,
  vmId: string,
  process: ProcessIdentity,
  forwards: VmForwards | undefined,
): Promise<VmSample> {
  const [usage, { disks, guest }] = await Promise.all([usageOf(process), queryQemu(ctx, vmId)])
  const { receivedBytes, sentBytes } = forwards ?? {}
  return {
    vmId,
    host: {
      ...usage,
      ...disks,
      // The forwarder receives what the guest sends.
      ...(sentBytes !== undefined && { slipway_vm_network_receive_bytes_total: sentBytes }),
      ...(receivedBytes !== undefined && { slipway_vm_network_transmit_bytes_total: receivedBytes }),
    },
    guest,
  }
}

async function usageOf({ pid }: ProcessIdentity) {
  const [stat, status] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8'),
    readFile(`/proc/${pid}/status`, 'utf8'),
  ])
  // The name of the process is in parentheses and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[11]) + Number(fields[12])
  const kilobytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN)
  return {
    slipway_vm_cpu_seconds_total: ticks / ticksPerSecond,
    ...(Number.isFinite(kilobytes) && { slipway_vm_memory_bytes: kilobytes * 1024 }),
  }
}

interface BlockStats {
  stats: { rd_bytes: number; wr_bytes: number }
}

function queryQemu({ records, options }: QemuContext, vmId: string) {
  return withQmp(vmSocket(records.folder(vmId), 'qmp'), options.qmpTimeoutMs, async (qmp) => {
    const blocks = await qmp.execute<BlockStats[]>('query-blockstats')
    const sumOf = (member: 'rd_bytes' | 'wr_bytes') =>
      blocks.reduce((sum, { stats }) => sum + stats[member], 0)
    const output = await qmp
      .execute<string>('ringbuf-read', { device: guestRing.id, size: guestRing.bytes, format: 'base64' })
      .catch((error) => {
        // A VM that was started by an earlier version has no port for reports.
        if (error instanceof QmpError) return ''
        throw error
      })
    return {
      disks: {
        slipway_vm_disk_read_bytes_total: sumOf('rd_bytes'),
        slipway_vm_disk_written_bytes_total: sumOf('wr_bytes'),
      },
      guest: lastReport(Buffer.from(output, 'base64').toString('utf8')),
    }
  })
}

/**
 * Returns the last valid report in the guest's output. QEMU keeps only the last bytes, and only the last few
 * lines are examined, so a guest that writes endlessly costs no more than any other.
 */
export function lastReport(text: string): GuestReport | null {
  const lines = text.slice(-4 * maxReportBytes).split('\n')
  for (const line of lines.slice(-8).toReversed()) {
    const report = line === '' ? null : parseGuestReport(line)
    if (report) return report
  }
  return null
}
