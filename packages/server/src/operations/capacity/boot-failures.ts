import type { Tx } from '../../postgres/database.ts'
import { lockLanes, touchLanesOfRequest } from '../../store/capacity/lanes.ts'
import { listOldLanes, restorePlaces } from '../../store/capacity/places.ts'
import { failAfterBoot, setWaitingAfterBoot } from '../../store/capacity/requests.ts'
import { emitRequest } from './events.ts'

const mostBoots = 3

/** The VM or group of an operation did not boot. If a capacity request was granted with it, the request waits again. */
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
