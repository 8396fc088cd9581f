import type { Services } from '../services.ts'
import { pruneOperations } from '../store/compute/operations.ts'
import { pruneEvents } from '../store/events/events.ts'
import { pruneCredentials } from '../store/identity/retention.ts'
import { simulated } from '../store/simulated/objects.ts'

const batch = 1_000

/** Removes what has been kept as long as it is promised. */
export async function pruneOld({ database }: Services): Promise<void> {
  await pruneCredentials(database)
  await pruneEvents(database, batch)
  await pruneOperations(database, batch)
  await simulated.prune(database, batch)
}
