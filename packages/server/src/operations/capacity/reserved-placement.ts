import { chooseGpus } from '../../domain/placement.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { findRoom, lockReservedGpus } from '../../store/capacity/reservations.ts'

export interface ReservedPlacement {
  hostId: string
  gpuIds: string[]
  /** The reservation. */
  heldFor: string
}

/** Finds GPUs in the reservations of the caller's organization; undefined if there is no room. */
export async function placeInReservation(
  tx: Tx,
  wanted: {
    organizationId: string | null
    projectId: string
    location: string
    family: string
    gpuCount: number
    /** Null for any reservation. */
    id: string | null
    /** The only host that the VM can use; null for any. */
    hostId?: string | null
  },
): Promise<ReservedPlacement | undefined> {
  const { organizationId, hostId = null } = wanted
  const room = organizationId && (await findRoom(tx, { ...wanted, organizationId, hostId }))
  if (!room) return undefined
  const chosen = chooseGpus(await lockReservedGpus(tx, room.id, room.host_id), wanted.gpuCount)
  if (!chosen) throw new TryAgain('another VM took the GPUs of the reservation')
  return { hostId: room.host_id, gpuIds: chosen.map(({ id }) => id), heldFor: room.id }
}
