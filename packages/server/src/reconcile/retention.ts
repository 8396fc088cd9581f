import type { Queryable } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { pruneProviderEvents } from '../store/billing/payments.ts'
import { pruneBillingSessions } from '../store/billing/sessions.ts'
import { pruneOperations } from '../store/compute/operations.ts'
import { pruneEvents } from '../store/events/events.ts'
import { credentialPrunes } from '../store/identity/retention.ts'
import { simulated } from '../store/simulated/objects.ts'

/** Small enough that no piece holds locks or a connection for long. */
const piece = 1_000

/** Each removes at most so many rows that have been kept as long as is promised, and returns how many. */
const prunes: ((db: Queryable, most: number) => Promise<number>)[] = [
  ...credentialPrunes,
  pruneEvents,
  pruneOperations,
  simulated.prune,
  pruneBillingSessions,
  pruneProviderEvents,
]

/** Removes, piece by piece, until nothing is left that is past its time. */
export async function pruneOld({ database }: Services, signal?: AbortSignal): Promise<void> {
  for (const prune of prunes) while ((await prune(database, piece)) === piece) if (signal?.aborted) return
}
