import { listDisksBehind } from '../store/drift.ts'
import { diskSpec } from './disk-create.ts'
import { EngineError, type HostReport } from './engine.ts'
import { engineAt } from './engine-work.ts'
import type { Workshop } from './operation.ts'

const callMs = 10_000

/** A disk that its engine shows smaller, or at an older generation than its last operation, was never grown: it is now. */
export async function regrowDisks(
  workshop: Workshop,
  location: string,
  reports: HostReport[],
): Promise<void> {
  const reported = reports.flatMap(({ disks }) => disks)
  for (const disk of await listDisksBehind(workshop.database, reported)) {
    const call = { generation: disk.generation, signal: AbortSignal.timeout(callMs) }
    await engineAt(workshop, location)
      .growDisk(diskSpec(disk), call)
      .catch((error) => {
        if (!(error instanceof EngineError)) throw error
        workshop.log.warn({ err: error, disk: disk.id }, 'disk not grown')
      })
  }
}
