import { Failure, requireFound } from '../../domain/failure.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { endHolds, lockHosts } from '../../store/capacity/holds.ts'
import { deleteEntries } from '../../store/capacity/queue-entries.ts'
import { lockQueuesOfRequest, touchQueuesOfRequest } from '../../store/capacity/queues.ts'
import {
  endRequest,
  findBlockConditions,
  findRequest,
  type RequestRow,
} from '../../store/capacity/requests.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { lockVm } from '../../store/compute/vms.ts'
import type { ProjectRequester } from '../admission.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { admitGroupCreate } from '../group/create.ts'
import { isReplacementDue } from '../health/automatic.ts'
import { admitVmReplace } from '../health/replace.ts'
import { admitVmCreate } from '../vm/create.ts'
import { admitVmStart } from '../vm/start.ts'
import type { Block } from './blocks.ts'
import { emitRequest } from './events.ts'
import { closeBlocked, offerGpus, requeue } from './offer.ts'

/**
 * Admits the VM or group of a request on the GPUs that are held for it. All checks of a creation or start
 * apply, except the check for stock.
 */
export async function admitHeld(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  request: RequestRow,
): Promise<BegunOperation> {
  const { id } = request
  const operation = await admitWanted(tx, catalogue, by, request)
  await lockQueuesOfRequest(tx, id)
  await touchQueuesOfRequest(tx, id)
  await deleteEntries(tx, id)
  const ended = await endRequest(tx, {
    id,
    from: 'held',
    to: 'fulfilled',
    resourceId: operation.resource_id,
    operationId: operation.id,
    error: null,
  })
  if (!ended) throw new TryAgain('the request no longer has a hold')
  await emitRequest(tx, 'capacity_request.fulfilled', ended, by)
  return operation
}

async function admitWanted(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  { id, project_id: projectId, location, held_hosts, body, start_vm_id, replace_vm_id }: RequestRow,
): Promise<BegunOperation> {
  const hold = { heldFor: id, hostIds: held_hosts }
  const { vm, instance_group: group } = body
  if (vm) return admitVmCreate(tx, catalogue, by, { ...vm, location }, hold)
  if (group) return admitGroupCreate(tx, catalogue, by, { ...group, vm: { ...group.vm, location } }, hold)
  if (replace_vm_id) {
    const faulty = requireFound('VM', await lockVm(tx, { projectId, id: replace_vm_id }))
    if (!isReplacementDue(faulty))
      throw new Failure('conflict', `The VM ${faulty.name} no longer needs replacement GPUs.`)
    return admitVmReplace(tx, by, faulty, hold)
  }
  const stopped = requireFound('VM', await lockVm(tx, { projectId, id: start_vm_id! }))
  return admitVmStart(tx, by, stopped, hold)
}

/** Uses the hold of a request on behalf of a caller. */
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
  const { has_hold_expired } = (await findBlockConditions(tx, { id, location: request.location }))!
  if (has_hold_expired)
    throw new Failure('conflict', 'The hold on the GPUs has expired. Send a new capacity request.')
  if (request.operation_id)
    throw new Failure('conflict', 'The group that did not boot is still being removed. Try again soon.')
  return admitHeld(tx, catalogue, by, request)
}

/**
 * Ends the hold of a request that cannot be granted now, and offers its GPUs to other requests. The request
 * keeps its position in the queue.
 */
export async function passOn(tx: Tx, request: RequestRow, block: Block): Promise<void> {
  const { id, held_hosts } = request
  await lockHosts(tx, held_hosts)
  await endHolds(tx, id, held_hosts)
  await requeue(tx, id)
  await closeBlocked(tx, request, block)
  await offerGpus(tx, held_hosts)
}
