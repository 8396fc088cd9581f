import type { Tx } from '../../postgres/database.ts'
import { listOldLanes, lockLanes, restorePlaces, touchLanesOfRequest } from '../../store/capacity/lanes.ts'
import { failAfterBoot, setWaitingAfterBoot } from '../../store/capacity/requests.ts'
import { emitRequest } from './events.ts'

const mostBoots = 3

/**
 * Called when the VM of an operation did not boot. If a capacity request was granted with the VM, the request waits again.
 */
export async function requeueAfterBoot(tx: Tx, operationId: string): Promise<void> {
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
  tx.signal('capacity')
}
