import { type VmType, vmType } from '@slipway/contract'
import type { Queryable } from '../postgres/database.ts'
import { listReservedRoom } from '../store/capacity/reservations.ts'

type Room = Awaited<ReturnType<typeof listReservedRoom>>

const vmsIn = (room: Room, { family, gpuCount }: VmType, at: string) =>
  room
    .filter((host) => host.location === at && host.family === family)
    .reduce((sum, { gpus }) => sum + Math.floor(gpus / gpuCount), 0)

/** Returns how many more VMs of a type a project can create in a location, on GPUs that its organization has reserved. */
export async function readReservedRoom(
  db: Queryable,
  { organizationId, projectId }: { organizationId: string; projectId: string },
): Promise<(type: string, location: string) => number> {
  const room = await listReservedRoom(db, { organizationId, projectId })
  return (type, location) => vmsIn(room, vmType(type)!, location)
}
