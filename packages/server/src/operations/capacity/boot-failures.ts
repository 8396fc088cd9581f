import type { Tx } from '../../postgres/database.ts'
import { lockLanes, touchLanesOfRequest } from '../../store/capacity/lanes.ts'
import { listOldLanes, restorePlaces } from '../../store/capacity/places.ts'
import { failAfterBoot, forgetOperation, setWaitingAfterBoot } from '../../store/capacity/requests.ts'
import { emitRequest } from './events.ts'

const mostBoots = 3

/** The VM of an operation did not boot and is removed. If a capacity request was granted with it, the request waits again. */
export async function requeueAfterBoot(tx: Tx, operationId: string): Promise<void> {
  await requeueBeforeRemoval(tx, operationId)
  await forgetOperation(tx, operationId)
  tx.signal('capacity')
}

/**
 * Lets the request wait again before the members of its group are removed: the GPUs of a removed member are offered while the
 * others still exist, and the request is before those that came later. It is granted only after `requeueAfterBoot`, because
 * the group still has its name.
 */
export async function requeueBeforeRemoval(tx: Tx, operationId: string): Promise<void> {
  const request = await setWaitingAfterBoot(tx, { operationId, mostBoots })
  if (!request) {
    const failed = await failAfterBoot(tx, operationId)
    if (failed) await emitRequest(tx, 'capacity_request.failed', failed)
    return
  }
  await lockLanes(tx, await listOldLanes(tx, request.id))
  await restorePlaces(tx, request.id)
  await touchLanesOfRequest(tx, request.id)
  await emitRequest(tx, 'capacity_request.requeued', request)
}
