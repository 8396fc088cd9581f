import { releaseUnusedNumbers } from './agent/vxlan-numbers.ts'
import type { IncusContext } from './context.ts'
import { dropUnusedNetworks } from './networks.ts'
import { deleteOldRemovalRecords } from './removals.ts'

/** Deletes removal records, VXLAN reservations and networks that are no longer needed. */
export async function removeLeftovers(ctx: IncusContext, signal: AbortSignal): Promise<void> {
  await deleteOldRemovalRecords(ctx, signal)
  await releaseUnusedNumbers(ctx, signal)
  await dropUnusedNetworks(ctx, signal)
}
