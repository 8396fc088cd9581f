import type { Queryable } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { pruneProviderEvents } from '../store/billing/payments.ts'
import { pruneBillingSessions } from '../store/billing/sessions.ts'
import { pruneRequests } from '../store/capacity/requests.ts'
import { pruneOperations } from '../store/compute/operations.ts'
import { pruneEvents } from '../store/events/events.ts'
import { pruneFamilyOperations } from '../store/family/operations.ts'
import { pruneGpuFaults } from '../store/fleet/gpu-health.ts'
import { credentialPrunes } from '../store/identity/retention.ts'
import { chunkPrunes } from '../store/metrics/samples.ts'
import { simulated } from '../store/simulated/objects.ts'

/** Small enough that one statement does not hold locks or a connection for long. */
const rowsPerStatement = 1_000

/**
 * Each function removes at most `limit` rows that are older than their retention period, and returns how
 * many.
 */
const prunes: ((db: Queryable, limit: number) => Promise<number>)[] = [
  ...credentialPrunes,
  pruneEvents,
  pruneOperations,
  pruneRequests,
  pruneFamilyOperations,
  simulated.prune,
  pruneBillingSessions,
  pruneProviderEvents,
  ...chunkPrunes,
  pruneGpuFaults,
]

/** Removes all rows that are older than their retention period. */
export async function pruneOld({ database }: Services, signal?: AbortSignal): Promise<void> {
  for (const prune of prunes)
    while ((await prune(database, rowsPerStatement)) === rowsPerStatement) if (signal?.aborted) return
}
