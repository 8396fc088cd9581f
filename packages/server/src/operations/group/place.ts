import type { PlacementPolicyName } from '@slipway/contract'
import { type OpenHost, placeGroup } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Hold, lockHeldHosts } from '../../store/capacity/holds.ts'
import { lockHostsForGroup } from '../../store/compute/group-hosts.ts'
import type { PlacementRequest } from '../../store/compute/host-locks.ts'
import { placeInReservations, type ReservationChoice } from '../capacity/reserved-placement.ts'
import type { Placement } from '../vm/place.ts'

/** The usual size of a host, from which the number of hosts to lock first is estimated. */
const gpusOfHost = 8

export interface GroupPlacementRequest extends PlacementRequest {
  count: number
  policy: PlacementPolicyName
  /** Hosts that no member may be placed on. */
  avoided: string[]
}

/** Where members get their GPUs from. */
export interface GpuSources {
  /** GPUs that are held for the group: it gets no others. */
  hold: Hold | undefined
  /** Reservations, which come before the stock; with an id, the group gets only GPUs of that one. */
  reservations: ReservationChoice | undefined
}

/** Finds GPUs for all members of a group, on hosts that it locks; fewer placements than members if not all fit. */
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

/** Waits for hosts that other transactions hold, and looks again until no other host has room, so that the number is exact. */
async function placeInStock(tx: Tx, request: GroupPlacementRequest): Promise<Placement[]> {
  const { count, policy, avoided } = request
  const hosts: OpenHost[] = []
  const except = [...avoided]
  for (let missing = count, round = 0; ; round++) {
    const few = Math.ceil((missing * request.gpuCount) / gpusOfHost) * 2 ** round
    const most = policy === 'spread' ? count : Math.min(count, few)
    const more = await lockHostsForGroup(tx, { ...request, except, most }, policy)
    hosts.push(...more)
    except.push(...more.map(({ id }) => id))
    // Placing takes GPUs from the hosts that it gets.
    const copies = hosts.map((host) => ({ ...host, gpus: [...host.gpus] }))
    const placed = placeGroup(copies, request, count, policy)
    if (placed.length === count || more.length === 0) return placed
    missing = count - placed.length
  }
}
