import type { GpuReport, HostReport } from '../engines/engine.ts'
import { offerGpus } from '../operations/capacity/offer.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { lockHosts } from '../store/capacity/holds.ts'
import { freeCleanGpus, listQuarantinedGpus } from '../store/compute/placement.ts'
import { emit } from '../store/events/events.ts'
import { recordCheck } from '../store/fleet/gpu-health.ts'

type QuarantinedGpu = Awaited<ReturnType<typeof listQuarantinedGpus>>[number]

/**
 * Ends the quarantine of GPUs that the engine reports as reset and without a VM, and that pass their check.
 * GPUs that fail the check stay in quarantine until an operator has them checked again.
 */
export async function freeReportedGpus(
  database: Database,
  location: string,
  reports: HostReport[],
  inspectedAt: Date,
): Promise<void> {
  const quarantined = await listQuarantinedGpus(database, location)
  if (quarantined.length === 0) return
  const gpusOf = new Map(reports.map(({ name, gpus }) => [name, gpus]))
  const reportOf = ({ host, pci_address }: QuarantinedGpu) =>
    gpusOf.get(host)?.find(({ pciAddress }) => pciAddress === pci_address)
  const ready = quarantined.flatMap((gpu) => {
    const report = reportOf(gpu)
    // A GPU that has failed its check cannot be reset, so its check is recorded without a reset.
    const isReady = report?.holderVmId === null && (report.isClean || report.check?.passed === false)
    return isReady && gpu.quarantined_at <= inspectedAt ? [{ gpu, report }] : []
  })
  if (ready.length === 0) return
  await database.transaction(async (tx) => {
    await lockHosts(tx, [...new Set(ready.map(({ gpu }) => gpu.host_id))])
    for (const { gpu, report } of ready) await applyCheck(tx, gpu, report)
    const passed = ready.filter(({ report }) => report.check?.passed !== false)
    const freed = await freeCleanGpus(
      tx,
      passed.map(({ gpu }) => gpu.id),
      inspectedAt,
    )
    await offerGpus(tx, freed)
  })
}

/** Records the check. A GPU that the host cannot check passes. */
async function applyCheck(tx: Tx, { id }: QuarantinedGpu, report: GpuReport): Promise<void> {
  const { passed, reasons } = report.check ?? { passed: true, reasons: [] }
  const checked = await recordCheck(tx, { id, passed, reasons })
  if (!checked || (passed && !checked.was_suspect)) return
  const data = { pci_address: checked.pci_address, ...(!passed && { reasons }) }
  const type = passed ? 'gpu.returned' : 'gpu.check_failed'
  await emit(tx, { type, resourceType: 'gpu', resourceId: id, data })
}
