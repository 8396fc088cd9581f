import type { HostReport } from '../engines/engine.ts'
import { freeCleanGpus, listQuarantinedGpus } from '../store/compute/placement.ts'
import type { Database } from '../store/database.ts'

/** Ends the quarantine of GPUs that the engine shows as reset and without a holder. */
export async function freeReportedGpus(
  database: Database,
  location: string,
  reports: HostReport[],
  inspectedAt: Date,
): Promise<void> {
  const clean = new Set(
    reports.flatMap(({ name, gpus }) =>
      gpus.filter((gpu) => gpu.isClean && gpu.holderVmId === null).map((gpu) => `${name} ${gpu.pciAddress}`),
    ),
  )
  const quarantined = await listQuarantinedGpus(database, location)
  const ids = quarantined
    .filter(({ host, pci_address }) => clean.has(`${host} ${pci_address}`))
    .map(({ id }) => id)
  await freeCleanGpus(database, ids, inspectedAt)
}
