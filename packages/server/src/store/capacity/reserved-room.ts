import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

interface WantedRoom {
  projectId: string
  location: string
  family: string
  gpuCount: number
  /** Null for any reservation of the organization. */
  id: string | null
  /** Null for any host. */
  allowedHosts: string[] | null
  limit: number
}

/** The SQL condition for a reservation `r` that VMs of a project may use now. */
const isOpenTo = (projectId: string) =>
  `r.organization_id = (SELECT organization_id FROM projects WHERE id = ${projectId}) AND r.ended_at IS NULL
   AND slipway_now() <@ r.term AND (r.projects = '{}' OR ${projectId} = ANY (r.projects))`

const unused = `reservations r JOIN gpus g ON g.held_for = r.id AND g.state = 'held'
   JOIN hosts h ON h.id = g.host_id AND h.is_schedulable AND h.state = 'up'`

/**
 * Lists hosts with room for a VM in the reservations of the project's organization. The cheapest reservation
 * comes first, and within it the host with the fewest GPUs left, so that whole units are used last.
 */
export const listReservedHosts = statement<{ heldFor: string; hostId: string }, WantedRoom, Tx>(
  'reservation_hosts',
  `SELECT r.id AS "heldFor", h.id AS "hostId" FROM ${unused}
   WHERE ${isOpenTo(':projectId')} AND r.location = :location AND r.family = :family AND coalesce(r.id = :id, true)
     AND coalesce(h.id = ANY (:allowedHosts::uuid[]), true)
   GROUP BY r.id, h.id HAVING count(*) >= :gpuCount
   ORDER BY r.usd_per_gpu_hour, r.id, count(*), h.id LIMIT :limit`,
).all

/** The unused GPUs of a reservation on one host. */
export interface ReservedRoom {
  id: string
  location: string
  family: string
  gpus: number
}

/**
 * Lists the unused GPUs of reservations that a project may use. Only callers from that project see them as
 * available.
 */
export const listReservedRoom = statement<ReservedRoom, { projectId: string }>(
  'reservation_list_room',
  `SELECT r.id, r.location, r.family, count(*)::integer AS gpus FROM ${unused}
   WHERE ${isOpenTo(':projectId')} GROUP BY r.id, h.id`,
).allBy('projectId')
