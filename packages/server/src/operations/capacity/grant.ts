import { Failure, requireFound } from '../../domain/failure.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { endHolds, lockHosts } from '../../store/capacity/holds.ts'
import { deletePlaces, lockLanesOfRequest, touchLanesOfRequest } from '../../store/capacity/lanes.ts'
import { endRequest, findRequest, findStanding, type RequestRow } from '../../store/capacity/requests.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { lockVm } from '../../store/compute/vms.ts'
import type { ProjectRequester } from '../admission.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { admitVmCreate } from '../vm/create.ts'
import { admitVmStart } from '../vm/start.ts'
import type { Block } from './blocks.ts'
import { emitRequest } from './events.ts'
import { closeBlocked, offerGpus, requeue } from './offer.ts'

/** Admits the VM of a request on the GPUs that are held for it: a creation or a start with all its checks except stock. */
export async function admitHeld(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  request: RequestRow,
): Promise<BegunOperation> {
  const { id, location, held_host, body, start_vm_id } = request
  const hold = { heldFor: id, hostId: held_host! }
  const operation = body.vm
    ? await admitVmCreate(tx, catalogue, by, { ...body.vm, location }, hold)
    : await admitVmStart(
        tx,
        by,
        requireFound('VM', await lockVm(tx, { projectId: request.project_id, id: start_vm_id! })),
        hold,
      )
  await lockLanesOfRequest(tx, id)
  await touchLanesOfRequest(tx, id)
  await deletePlaces(tx, id)
  const ended = await endRequest(tx, {
    id,
    from: 'held',
    to: 'fulfilled',
    resourceId: operation.resource_id,
    operationId: operation.id,
    error: null,
  })
  if (!ended) throw new TryAgain('the request is not held any more')
  await emitRequest(tx, 'capacity_request.fulfilled', ended, by)
  return operation
}

/** Creates or starts the VM of a held request for a caller. */
export async function claimRequest(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  id: string,
): Promise<BegunOperation> {
  const found = await findRequest(tx, id)
  const request = requireFound('capacity request', found?.project_id === by.projectId ? found : undefined)
  if (request.state !== 'held')
    throw new Failure(
      'conflict',
      request.state === 'waiting'
        ? 'No GPUs are held for the capacity request yet.'
        : `The capacity request is ${request.state}: there is nothing to claim.`,
    )
  const { is_hold_over } = (await findStanding(tx, { id, location: request.location }))!
  if (is_hold_over)
    throw new Failure('conflict', 'The hold of the GPUs has expired. Send a new capacity request.')
  return admitHeld(tx, catalogue, by, request)
}

/** Passes on the hold of a request that cannot be granted now. The request keeps its turn. */
export async function passOn(tx: Tx, request: RequestRow, block: Block): Promise<void> {
  const { id, held_host } = request
  await lockHosts(tx, [held_host!])
  await endHolds(tx, id, held_host!)
  await requeue(tx, id)
  await closeBlocked(tx, request, block)
  await offerGpus(tx, [held_host!])
}
