import { minTtlSeconds, vmType } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, type Outcome, type Work } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { raiseVmGeneration, setVmTtl, setVmType } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { beginOperation, type ProjectRequester, requireNoOperation } from '../admission.ts'

/** A new type takes effect at the next start, since a stopped VM has no GPUs. */
export async function admitVmRetype(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  typeName: string,
): Promise<BegunOperation> {
  const type = vmType(typeName)!
  if (type.family !== vm.family) throw invalidField('type', `must be a type of the VM's family ${vm.family}`)
  await requireNoOperation(tx, vm.id, `The VM ${vm.name}`)
  if (vm.state !== 'STATE_SHUTOFF')
    throw new Failure(
      'conflict',
      `Changing the type requires the VM to be in STATE_SHUTOFF; it is in ${vm.state}. Stop it first.`,
    )
  if (!type.isWholeHost && vm.disks.some((disk) => disk.type === 'shared-volume'))
    throw new Failure(
      'conflict',
      'The VM has a shared volume; only VMs of a whole-host type can use shared volumes. Detach the volume first.',
    )
  return begin(tx, by, vm, { type: typeName })
}

export async function admitVmTtl(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  ttl: { ttl_seconds: number; on_expiry?: 'stop' | 'delete' },
): Promise<BegunOperation> {
  if (ttl.ttl_seconds !== 0 && ttl.ttl_seconds < minTtlSeconds)
    throw invalidField('ttl_seconds', `must be 0 for no expiry, or at least ${minTtlSeconds}`)
  await requireNoOperation(tx, vm.id, `The VM ${vm.name}`)
  return begin(tx, by, vm, ttl)
}

const begin = async (tx: Tx, by: ProjectRequester, vm: VmRow, request: Record<string, unknown>) =>
  beginOperation(tx, by, vmUpdate, {
    resource: vm,
    generation: await raiseVmGeneration(tx, vm.id),
    request,
    eventType: 'vm.updating',
    eventData: request,
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
  if (ttl_seconds !== undefined) await setVmTtl(tx, id, ttl_seconds || null, on_expiry ?? null)
  return done(await vmViewOf(tx, id))
}
