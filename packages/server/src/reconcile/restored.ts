import type { HostReport } from '../engines/engine.ts'
import type { Services } from '../services.ts'
import { takeGenerations } from '../store/fleet/restored.ts'

/**
 * A generation is written to the store before any engine hears of it. One that an engine has and the store lacks was lost
 * with what came after a backup: unless the store takes it over, its calls are refused as those of somebody late.
 */
export async function catchUp(
  { database, log }: Services,
  location: string,
  reports: HostReport[],
): Promise<void> {
  const vms = reports.flatMap((report) => report.vms)
  const disks = reports.flatMap((report) => report.disks)
  for (const id of await takeGenerations(database, { vms, disks }))
    log.warn({ id, location }, 'its engine has seen more than the store, which is a restored one')
}
