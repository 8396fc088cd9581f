import type { HostReport } from '../engines/engine.ts'
import type { Database } from '../postgres/database.ts'
import { freeCleanGpus, listQuarantinedGpus } from '../store/compute/placement.ts'

/** Ends the quarantine of GPUs that the engine shows as reset and without a holder. */
export async function freeReportedGpus(
  database: Database,
  location: string,
  reports: HostReport[],
  inspectedAt: Date,
): Promise<void> {
  const quarantined = await listQuarantinedGpus(database, location)
  if (quarantined.length === 0) return
  const gpusOf = new Map(reports.map(({ name, gpus }) => [name, gpus]))
  const clean = quarantined.filter(({ host, pci_address }) =>
    gpusOf
      .get(host)
      ?.some(
        ({ pciAddress, isClean, holderVmId }) => pciAddress === pci_address && isClean && holderVmId === null,
      ),
  )
  await freeCleanGpus(
    database,
    clean.map(({ id }) => id),
    inspectedAt,
  )
}
