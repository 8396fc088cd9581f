import type { HostReport } from '../engines/engine.ts'
import type { Services } from '../services.ts'
import { takeGenerations } from '../store/fleet/restored.ts'

/**
 * Takes over generations that an engine has and the store lacks. Generations are written to the store before an engine gets
 * them, so that the store is a restored backup, or another store uses this engine. Only with `[operations] restored` does the
 * operator confirm the former; otherwise the engine refuses the store's calls as outdated.
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
    log.warn(
      { id, location },
      'adopted the generation of the engine, which is newer than that of the restored store',
    )
}
