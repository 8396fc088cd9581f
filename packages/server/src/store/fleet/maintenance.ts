import type { EventType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { emit } from '../events/events.ts'
import { livesOnHost } from './fleet.ts'

/** How many of the notices (7 days, 24 hours and 1 hour ahead) are due by now. */
const dueNotices = `(CASE WHEN h.maintenance_at <= slipway_now() + interval '1 hour' THEN 3
  WHEN h.maintenance_at <= slipway_now() + interval '24 hours' THEN 2
  WHEN h.maintenance_at <= slipway_now() + interval '7 days' THEN 1 ELSE 0 END)`

/** Hosts for which tenants have to be notified. */
export const maintenanceDue = `SELECT h.id FROM hosts h
  WHERE h.maintenance_at <= slipway_now() + interval '7 days' AND ${dueNotices} > h.maintenance_notices
  ORDER BY h.maintenance_at`

export const listMaintenanceDue = statement<{ id: string }>('maintenance_due', maintenanceDue).all

export interface MaintenanceRow {
  location: string
  maintenance_at: Date
  maintenance_note: string
}

/**
 * Returns the maintenance if a notice is due; each notice is returned once. A late notice replaces the earlier
 * ones.
 */
export const takeMaintenanceNotice = statement<MaintenanceRow, { id: string }, Tx>(
  'maintenance_take_notice',
  `UPDATE hosts h SET maintenance_notices = ${dueNotices}
   WHERE h.id = :id AND h.maintenance_at IS NOT NULL AND ${dueNotices} > h.maintenance_notices
   RETURNING h.location, h.maintenance_at, h.maintenance_note`,
).oneBy('id')

/** Returns undefined if the time is not in the future, or if there is no such host. */
export const setMaintenance = statement<{ id: string }, { id: string; at: Date; note: string }, Tx>(
  'maintenance_set',
  `UPDATE hosts SET maintenance_at = :at, maintenance_note = :note, maintenance_announced_at = slipway_now(),
     maintenance_notices = 0
   WHERE id = :id AND :at::timestamptz > slipway_now() RETURNING id`,
).one

/**
 * Cancels maintenance. Returns whether tenants were notified and it has not begun; undefined if none was
 * announced.
 */
export const clearMaintenance = statement<{ is_awaited: boolean }, { id: string }, Tx>(
  'maintenance_clear',
  `UPDATE hosts h SET maintenance_at = NULL, maintenance_note = '', maintenance_announced_at = NULL, maintenance_notices = 0
   FROM hosts old WHERE h.id = :id AND old.id = h.id AND old.maintenance_at IS NOT NULL
   RETURNING old.maintenance_notices > 0 AND old.maintenance_at > slipway_now() AS is_awaited`,
).oneBy('id')

export const setHostNote = statement<{ id: string }, { id: string; note: string; actor: string }, Tx>(
  'host_set_note',
  `UPDATE hosts SET note = :note, note_at = CASE WHEN :note <> '' THEN slipway_now() END,
     note_by = CASE WHEN :note <> '' THEN :actor ELSE '' END
   WHERE id = :id RETURNING id`,
).one

/** Lists the VMs that need this host to run. */
const listHostVms = statement<
  { id: string; name: string; labels: Record<string, string>; project_id: string },
  { id: string }
>(
  'host_vms',
  `SELECT v.id, v.name, v.labels, v.project_id
   FROM vms v JOIN hosts h ON h.id = v.host_id JOIN locations l ON l.name = h.location
   WHERE h.id = :id AND v.deleted_at IS NULL AND ${livesOnHost} ORDER BY v.id`,
).allBy('id')

/** Emits an event for each VM that needs the host to run. The actor is the service: tenants do not see operators. */
export async function emitForHostVms(
  tx: Tx,
  hostId: string,
  type: EventType,
  data: Record<string, unknown>,
): Promise<void> {
  for (const { id, name, labels, project_id } of await listHostVms(tx, hostId))
    await emit(tx, {
      type,
      resourceType: 'vm',
      resourceId: id,
      projectId: project_id,
      data: { name, labels, ...data },
    })
}
