import type { HostReport } from '../engines/engine.ts'
import type { Services } from '../services.ts'
import { takeGenerations } from '../store/fleet/restored.ts'

/**
 * A generation is written to the store before any engine hears of it. One that an engine has and the store lacks was lost
 * with what came after a backup, or belongs to another store that works with this engine. An operator who says that it
 * was the backup has the store take it over; otherwise its calls are refused as those of somebody late.
 */
export async function catchUp(
  { database, log }: Services,
  location: string,
  reports: HostReport[],
): Promise<void> {
  const areNumbers = (...generations: number[]) => generations.every(Number.isSafeInteger)
  const vms = reports
    .flatMap((report) => report.vms)
    .filter(({ generation, firewallGeneration }) => areNumbers(generation, firewallGeneration))
  const disks = reports.flatMap((report) => report.disks).filter(({ generation }) => areNumbers(generation))
  for (const id of await takeGenerations(database, { vms, disks }))
    log.warn({ id, location }, 'its engine had seen more than the restored store')
}
