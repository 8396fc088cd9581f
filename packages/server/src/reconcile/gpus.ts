import type { GpuCheck, GpuReport, HostReport } from '../engines/engine.ts'
import { offerGpus } from '../operations/capacity/offer.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { lockHosts } from '../store/capacity/holds.ts'
import { freeCleanGpus, listQuarantinedGpus } from '../store/compute/placement.ts'
import { emit } from '../store/events/events.ts'
import { recordCheck } from '../store/fleet/gpu-health.ts'

type QuarantinedGpu = Awaited<ReturnType<typeof listQuarantinedGpus>>[number]

/** A suspect GPU returns to stock only after a check, or when an operator frees it. */
const unchecked: GpuCheck = {
  passed: false,
  reasons: [
    'The GPU was not checked, because its host does not report checks. If you are sure that it works, free it with slipway admin gpu free.',
  ],
}

/**
 * Ends the quarantine of GPUs that the engine reports as reset and without a VM, and that pass their check.
 * GPUs that fail the check, and suspect GPUs whose host cannot check them, stay in quarantine until an
 * operator has them checked again or frees them.
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
    return isReady && gpu.quarantined_at <= inspectedAt ? [{ gpu, check: checkOf(gpu, report) }] : []
  })
  if (ready.length === 0) return
  await database.transaction(async (tx) => {
    await lockHosts(tx, [...new Set(ready.map(({ gpu }) => gpu.host_id))])
    for (const { gpu, check } of ready) if (check) await applyCheck(tx, gpu, check)
    const passed = ready.filter(({ check }) => check?.passed !== false)
    const freed = await freeCleanGpus(
      tx,
      passed.map(({ gpu }) => gpu.id),
      inspectedAt,
    )
    await offerGpus(tx, freed)
  })
}

/** Returns null if the host cannot check the GPU and no fault of it is known: then no check is recorded. */
const checkOf = ({ is_suspect }: QuarantinedGpu, { check }: GpuReport): GpuCheck | null =>
  check ?? (is_suspect ? unchecked : null)

async function applyCheck(tx: Tx, { id }: QuarantinedGpu, { passed, reasons }: GpuCheck): Promise<void> {
  const checked = await recordCheck(tx, { id, passed, reasons })
  if (!checked || (passed && !checked.was_suspect)) return
  const data = { pci_address: checked.pci_address, ...(!passed && { reasons }) }
  const type = passed ? 'gpu.returned' : 'gpu.check_failed'
  await emit(tx, { type, resourceType: 'gpu', resourceId: id, data })
}
