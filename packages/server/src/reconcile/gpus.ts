import type { HostReport } from '../engines/engine.ts'
import { offerGpus } from '../operations/capacity/offer.ts'
import type { Database } from '../postgres/database.ts'
import { freeCleanGpus, listQuarantinedGpus } from '../store/compute/placement.ts'

/** Ends the quarantine of GPUs that the engine reports as reset and without a VM. */
export async function freeReportedGpus(
  database: Database,
  location: string,
  reports: HostReport[],
  inspectedAt: Date,
): Promise<void> {
  const quarantined = await listQuarantinedGpus(database, location)
  if (quarantined.length === 0) return
  const gpusOf = new Map(reports.map(({ name, gpus }) => [name, gpus]))
  const isClean = ({ host, pci_address }: { host: string; pci_address: string }) => {
    const gpu = gpusOf.get(host)?.find(({ pciAddress }) => pciAddress === pci_address)
    return gpu?.isClean && gpu.holderVmId === null
  }
  const cleanIds = quarantined.filter(isClean).map(({ id }) => id)
  if (cleanIds.length === 0) return
  await database.transaction(async (tx) => offerGpus(tx, await freeCleanGpus(tx, cleanIds, inspectedAt)))
}
