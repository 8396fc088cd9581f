import { anyLocation, type PlacementPolicyName, vmType } from '@slipway/contract'
import { outOfStock } from '../../domain/failure.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { listGroupRoom } from '../../store/compute/group-hosts.ts'
import type { ProjectRequester } from '../admission.ts'
import { readReservedRoom, reservationChoice } from '../capacity/reserved-placement.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { chooseLocation } from '../vm/location.ts'
import type { VmPlan } from '../vm/plan.ts'
import { queueOf } from '../vm/refusals.ts'
import type { VmBody } from '../vm/template.ts'

/** Returns the locations where all members fit now, in catalogue order, and the best location for them. */
export async function fittingLocations(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  { body, count, policy }: { body: VmBody; count: number; policy: PlacementPolicyName },
): Promise<{ fitting: string[]; best: string }> {
  const type = vmType(body.type)!
  const { family, gpuCount } = type
  const [{ name, fitting: fittingOne }, rooms, reserved] = await Promise.all([
    chooseLocation(tx, catalogue, by.projectId, { ...body, location: anyLocation }),
    listGroupRoom(tx, { family, gpuCount }),
    readReservedRoom(tx, by.projectId, body, type),
  ])
  const inStock = new Map(rooms.map((room) => [room.location, room]))
  const roomOf = (location: string) => {
    const { vms, hosts } = inStock.get(location) ?? { vms: 0, hosts: 0 }
    const own = reserved(location)
    // A host may have both stock and reserved GPUs, so the larger number of hosts is a safe lower bound.
    return policy === 'spread' ? Math.max(hosts, own.length) : vms + own.reduce((sum, each) => sum + each, 0)
  }
  const fitting = fittingOne.filter((location) => roomOf(location) >= count)
  const best = fitting[0] ?? fittingOne.toSorted((a, b) => roomOf(b) - roomOf(a))[0] ?? name
  return { fitting, best }
}

/**
 * Returns why no member is created and how many would fit, or `TryAgain` if the group may move to another
 * location.
 */
export async function notAllFit(
  tx: Tx,
  catalogue: CatalogueCache,
  plan: VmPlan,
  policy: PlacementPolicyName,
  { fits, count, mayMove }: { fits: number; count: number; mayMove: boolean },
): Promise<Error> {
  const { by, body, location, type } = plan
  const isOnlyReserved = reservationChoice(by.projectId, body)?.id
  if (isOnlyReserved)
    return outOfStock(
      `The reservation has room for ${fits} of ${count} members in ${location.name}. No member was created.`,
      [],
      { fits },
    )
  const { fitting } = await fittingLocations(tx, catalogue, by, { body, count, policy })
  const elsewhere = fitting.filter((name) => name !== location.name)
  if (mayMove && elsewhere.length > 0) return new TryAgain('the group fits in another location')
  const queue = await queueOf(tx, type, [location.name])
  const hosts = policy === 'spread' ? ', each on a separate host' : ''
  const hint =
    elsewhere.length > 0
      ? `All would fit in ${elsewhere.join(', ')}.`
      : 'Ask for fewer members, or try again later.'
  return outOfStock(
    `${type.name} is out of stock in ${location.name}: ${fits} of ${count} members fit${hosts}, so none was created. ${hint}`,
    elsewhere,
    // The estimate is for one VM.
    { fits, queue: queue && { ...queue, likely_at: '' } },
  )
}
