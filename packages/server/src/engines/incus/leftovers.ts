import { releaseUnusedNumbers } from './agent/vxlan-numbers.ts'
import type { IncusContext } from './context.ts'
import { forgetLongGone } from './gone.ts'
import { dropUnusedNetworks } from './networks.ts'

/** Removes records, reserved numbers and networks that no VM needs any more. */
export async function removeLeftovers(ctx: IncusContext, signal: AbortSignal): Promise<void> {
  await forgetLongGone(ctx, signal)
  await releaseUnusedNumbers(ctx, signal)
  await dropUnusedNetworks(ctx, signal)
}
