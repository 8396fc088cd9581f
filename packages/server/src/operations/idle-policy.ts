import type { IdlePolicy, VmCreate } from '@slipway/contract'
import { Failure, invalidField } from '../domain/failure.ts'
import type { Tx } from '../postgres/database.ts'
import type { BegunOperation } from '../store/compute/operation-row.ts'
import { vmViewOf } from '../store/compute/vm-view.ts'
import type { VmRow } from '../store/compute/vms.ts'
import type { LocationRow } from '../store/fleet/locations.ts'
import { setIdlePolicy } from '../store/metrics/idle.ts'
import type { ProjectRequester } from './admission.ts'
import { recordAnnotation } from './annotations.ts'
import type { CatalogueCache } from './catalogue.ts'

type GivenPolicy = NonNullable<VmCreate['idle_policy']>

export const idlePolicyOf = (given: GivenPolicy): IdlePolicy => ({ ignore_ssh: false, ...given })

/**
 * Throws a 400 if the load of the VM's GPUs would never be known: without the reporter in the image, or in a
 * location whose engine has no connection to the reporter. Such a VM would never count as idle.
 */
export function requireReporter(
  { name, tags }: { name: string; tags: string[] },
  location: Pick<LocationRow, 'name' | 'engine'>,
): void {
  if (location.engine === 'incus')
    throw invalidField(
      'idle_policy',
      `cannot be used in ${location.name}, because VMs in this location do not report their GPU load`,
    )
  if (!tags.includes('slipway-guest'))
    throw invalidField(
      'idle_policy',
      `requires an image with the tag slipway-guest, because only VMs with such an image report their GPU load; ${name} does not have this tag`,
    )
}

/** Changes the policy. This also cancels an announced stop. The caller has locked the VM. */
export async function changeIdlePolicy(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  vm: VmRow,
  given: GivenPolicy | null,
): Promise<BegunOperation> {
  if (vm.state === 'STATE_DELETING')
    throw new Failure('conflict', `The VM ${vm.name} is being deleted and cannot be changed.`)
  if (given)
    requireReporter(
      await catalogue.image(tx, vm.image, vm.location),
      await catalogue.location(tx, vm.location),
    )
  const idle_policy = given && idlePolicyOf(given)
  await setIdlePolicy(tx, vm.id, idle_policy && JSON.stringify(idle_policy))
  return recordAnnotation(tx, by, 'vm', vm, { idle_policy }, await vmViewOf(tx, vm.id))
}
