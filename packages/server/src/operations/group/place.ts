import type { PlacementPolicyName } from '@slipway/contract'
import { type OpenHost, placeGroup } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Hold, lockHeldHosts } from '../../store/capacity/holds.ts'
import { lockHostsForGroup } from '../../store/compute/group-hosts.ts'
import type { PlacementRequest } from '../../store/compute/host-locks.ts'
import { placeInReservations, type ReservationChoice } from '../capacity/reserved-placement.ts'
import type { Placement } from '../vm/place.ts'

/** The usual number of GPUs per host, used to estimate how many hosts to lock first. */
const gpusPerHost = 8

export interface GroupPlacementRequest extends PlacementRequest {
  count: number
  policy: PlacementPolicyName
  /** Hosts that no member may be placed on. */
  avoided: string[]
}

/** Where the GPUs of the members come from. */
export interface GpuSources {
  /** GPUs held for the group. If set, the group gets no others. */
  hold: Hold | undefined
  /** Reservations to use before the stock. With an id, the group gets only GPUs of that reservation. */
  reservations: ReservationChoice | undefined
}

/**
 * Finds GPUs for all members of a group, and locks their hosts. Returns fewer placements than members if not
 * all fit.
 */
export async function placeMembers(
  tx: Tx,
  request: GroupPlacementRequest,
  { hold, reservations }: GpuSources,
): Promise<Placement[]> {
  const { count, policy, avoided } = request
  if (hold) return placeOnHeld(tx, request, hold)
  const reserved = reservations ? await placeInReservations(tx, reservations, request, request) : []
  if (reserved.length === count || reservations?.id) return reserved
  const used = policy === 'spread' ? reserved.map(({ hostId }) => hostId) : []
  const rest = { ...request, count: count - reserved.length, avoided: [...avoided, ...used] }
  return [...reserved, ...(await placeInStock(tx, rest))]
}

async function placeOnHeld(
  tx: Tx,
  request: GroupPlacementRequest,
  { heldFor, hostIds }: Hold,
): Promise<Placement[]> {
  const hosts = await lockHeldHosts(
    tx,
    hostIds.map((hostId) => ({ heldFor, hostId })),
  )
  return placeGroup(hosts, request, request.count, request.policy).map((each) => ({ ...each, heldFor }))
}

/**
 * Waits for hosts that other transactions have locked, and repeats until no other host has room, so that the
 * number of placements is exact.
 */
async function placeInStock(tx: Tx, request: GroupPlacementRequest): Promise<Placement[]> {
  const { count, policy, avoided } = request
  const hosts: OpenHost[] = []
  const except = [...avoided]
  for (let missing = count, round = 0; ; round++) {
    const estimated = Math.ceil((missing * request.gpuCount) / gpusPerHost) * 2 ** round
    const limit = policy === 'spread' ? count : Math.min(count, estimated)
    const more = await lockHostsForGroup(tx, { ...request, except, limit }, policy)
    hosts.push(...more)
    except.push(...more.map(({ id }) => id))
    // `placeGroup` removes GPUs from the hosts that it is given.
    const copies = hosts.map((host) => ({ ...host, gpus: [...host.gpus] }))
    const placed = placeGroup(copies, request, count, policy)
    if (placed.length === count || more.length === 0) return placed
    missing = count - placed.length
  }
}
