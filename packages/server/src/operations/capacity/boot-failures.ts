import type { Tx } from '../../postgres/database.ts'
import { listOldQueues, restoreEntries } from '../../store/capacity/queue-entries.ts'
import { lockQueues, touchQueuesOfRequest } from '../../store/capacity/queues.ts'
import {
  failAfterFailedBoot,
  forgetOperation,
  setWaitingAfterFailedBoot,
} from '../../store/capacity/requests.ts'
import { emitRequest } from './events.ts'

const maxRequeues = 3

/**
 * Called after the VM of an operation did not boot and was removed. If the operation was started for a capacity request, the
 * request returns to the queue.
 */
export async function requeueAfterFailedBoot(tx: Tx, operationId: string): Promise<void> {
  await requeueBeforeRemoval(tx, operationId)
  await forgetOperation(tx, operationId)
  tx.signal('capacity')
}

/**
 * Returns the request to its queues before the members of its group are removed. The GPUs of a member are offered as soon as
 * the member is removed, and this request must already be in front of later requests by then. The request can be granted only
 * after `requeueAfterFailedBoot`, because until then the old group occupies the name.
 */
export async function requeueBeforeRemoval(tx: Tx, operationId: string): Promise<void> {
  const request = await setWaitingAfterFailedBoot(tx, { operationId, maxRequeues })
  if (!request) {
    const failed = await failAfterFailedBoot(tx, operationId)
    if (failed) await emitRequest(tx, 'capacity_request.failed', failed)
    return
  }
  await lockQueues(tx, await listOldQueues(tx, request.id))
  await restoreEntries(tx, request.id)
  await touchQueuesOfRequest(tx, request.id)
  await emitRequest(tx, 'capacity_request.requeued', request)
}
