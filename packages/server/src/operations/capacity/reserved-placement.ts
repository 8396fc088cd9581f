import type { PlacementPolicyName, VmCreate, VmType } from '@slipway/contract'
import { placeGroup } from '../../domain/placement.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { type HeldHost, lockHeldHosts } from '../../store/capacity/holds.ts'
import { listReservedHosts, listReservedRoom } from '../../store/capacity/reserved-room.ts'
import type { PlacementRequest } from '../../store/compute/host-locks.ts'
import type { Placement } from '../vm/place.ts'

/** The reservations that VMs of a project may use. */
export interface ReservationChoice {
  projectId: string
  /** Null for any reservation of the organization, the cheapest first. */
  id: string | null
}

/** Returns which reservations a VM request may use; undefined if none. */
export function reservationChoice(
  projectId: string,
  { reservation_specification: wanted }: Pick<VmCreate, 'reservation_specification'>,
): ReservationChoice | undefined {
  if (wanted && 'id' in wanted) return { projectId, id: wanted.id }
  return wanted?.selection_strategy === 'on_demand' ? undefined : { projectId, id: null }
}

/**
 * Returns a function that lists, for each host of a location, how many VMs of the type fit into reservations
 * that the request may use.
 */
export async function readReservedRoom(
  tx: Tx,
  projectId: string,
  body: Pick<VmCreate, 'reservation_specification'>,
  { family, gpuCount }: VmType,
): Promise<(location: string) => number[]> {
  const choice = reservationChoice(projectId, body)
  const room = (choice ? await listReservedRoom(tx, projectId) : [])
    .filter((host) => host.family === family && (choice?.id ?? host.id) === host.id)
    .map(({ location, gpus }) => ({ location, vms: Math.floor(gpus / gpuCount) }))
  return (at) => room.filter(({ location, vms }) => location === at && vms > 0).map(({ vms }) => vms)
}

/** Identical VMs: a single one, or the members of a group. */
interface WantedVms {
  count: number
  policy: PlacementPolicyName
  /** Hosts that no VM may be placed on. */
  avoided: string[]
}

const oneVm: WantedVms = { count: 1, policy: 'unspecified', avoided: [] }

/** Places as many of the VMs in reservations as fit, and locks the hosts. */
export async function placeInReservations(
  tx: Tx,
  choice: ReservationChoice,
  wanted: PlacementRequest,
  { count, policy, avoided }: WantedVms = oneVm,
): Promise<Placement[]> {
  const listed = await listReservedHosts(tx, { ...wanted, ...choice, limit: count + avoided.length })
  const hosts = await lockHeldHosts(
    tx,
    listed.filter(({ hostId }) => !avoided.includes(hostId)),
  )
  const placed: Placement[] = []
  for (const reservationId of new Set(hosts.map(({ heldFor }) => heldFor))) {
    const isUsed = ({ id }: HeldHost) => placed.some(({ hostId }) => policy === 'spread' && hostId === id)
    const own = hosts.filter((host) => host.heldFor === reservationId && !isUsed(host))
    const more = placeGroup(own, wanted, count - placed.length, policy)
    placed.push(...more.map((each) => ({ ...each, heldFor: reservationId, reservationId })))
  }
  if (placed.length === 0 && hosts.length > 0)
    throw new TryAgain('another VM took the GPUs of the reservation')
  return placed
}
