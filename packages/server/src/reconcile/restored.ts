import type { HostReport } from '../engines/engine.ts'
import type { Services } from '../services.ts'
import { takeGenerations } from '../store/fleet/restored.ts'

/**
 * Adopts generations that are newer in an engine than in the database. Generations are written to the
 * database before an engine gets them. A newer generation in the engine therefore means that the database is a
 * restored backup, or that another database uses this engine. With `[operations] restored`, the operator confirms
 * that it is a restored backup. Without this setting, the engine rejects the calls of this service as stale.
 */
export async function adoptGenerations(
  { database, log }: Services,
  location: string,
  reports: HostReport[],
): Promise<void> {
  const areNumbers = (...generations: number[]) => generations.every(Number.isSafeInteger)
  const vms = reports
    .flatMap((report) => report.vms)
    .filter(({ generation, firewallGeneration }) => areNumbers(generation, firewallGeneration))
  const disks = reports.flatMap((report) => report.disks).filter(({ generation }) => areNumbers(generation))
  const captures = reports
    .flatMap((report) => report.captures ?? [])
    .filter(({ generation }) => areNumbers(generation))
  for (const id of await takeGenerations(database, { vms, disks, captures }))
    log.warn(
      { id, location },
      "adopted the engine's generation, which is newer than that of the restored database",
    )
}
