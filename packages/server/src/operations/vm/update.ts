import { vmType } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, type Outcome, type Work } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { raiseVmGeneration, setVmTtl, setVmType } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { beginOperation, type ProjectRequester, requireIdle } from '../admission.ts'

/** A shut off VM has no GPUs: a new type of its family takes effect at its next start. */
export async function admitVmRetype(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  typeName: string,
): Promise<BegunOperation> {
  const type = vmType(typeName)!
  if (type.family !== vm.family)
    throw invalidField('type', `must be of the family ${vm.family}, as the VM is`)
  await requireIdle(tx, vm.id, `The VM ${vm.name}`)
  if (vm.state !== 'STATE_SHUTOFF')
    throw new Failure(
      'conflict',
      `A new type needs the VM in STATE_SHUTOFF; it is in ${vm.state}. Stop it first.`,
    )
  if (!type.isWholeHost && vm.disks.some((disk) => disk.type === 'shared-volume'))
    throw new Failure(
      'conflict',
      'The VM has a shared volume, which only whole-host types can have: detach it first.',
    )
  return begin(tx, by, vm, { type: typeName })
}

export async function admitVmTtl(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  ttl: { ttl_seconds: number; on_expiry?: 'stop' | 'delete' },
): Promise<BegunOperation> {
  await requireIdle(tx, vm.id, `The VM ${vm.name}`)
  return begin(tx, by, vm, ttl)
}

const begin = async (tx: Tx, by: ProjectRequester, vm: VmRow, request: Record<string, unknown>) =>
  beginOperation(tx, by, vmUpdate, {
    resourceId: vm.id,
    location: vm.location,
    generation: await raiseVmGeneration(tx, vm.id),
    request,
    eventType: 'vm.updating',
    eventData: { name: vm.name, labels: vm.labels, ...request },
  })

export const vmUpdate: Definition = {
  kind: 'vm-update',
  name: 'UPDATE',
  resourceType: 'vm',
  deadlineS: 60,
  steps: [{ name: 'update', tx: update }],
}

async function update(work: Work, tx: Tx): Promise<Outcome> {
  const { type, ttl_seconds, on_expiry } = work.operation.request as {
    type?: string
    ttl_seconds?: number
    on_expiry?: string
  }
  const id = work.operation.resource_id
  if (type !== undefined) await setVmType(tx, id, type, vmType(type)!.gpuCount)
  if (ttl_seconds !== undefined) await setVmTtl(tx, id, ttl_seconds, on_expiry ?? null)
  return done(await vmViewOf(tx, work.operation.resource_id))
}
