import { type VmType, vmType } from '@slipway/contract'
import type { Queryable } from '../postgres/database.ts'
import { sharedRead } from '../postgres/keyed.ts'
import { listReservedRoom, type ReservedRoom } from '../store/capacity/reserved-room.ts'

/** Concurrent calls share one read, because every program that polls for a free GPU causes such a call. */
const roomOf = sharedRead(listReservedRoom)

const vmsIn = (room: ReservedRoom[], { family, gpuCount }: VmType, at: string) =>
  room
    .filter((host) => host.location === at && host.family === family)
    .reduce((sum, { gpus }) => sum + Math.floor(gpus / gpuCount), 0)

/**
 * Returns a function that counts how many more VMs of a type the project can create in a location, on GPUs that its
 * organization has reserved.
 */
export async function readReservedRoom(
  db: Queryable,
  { projectId }: { projectId: string },
): Promise<(type: string, location: string) => number> {
  const room = await roomOf(db, projectId)
  return (type, location) => vmsIn(room, vmType(type)!, location)
}
