import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { livesOnHost } from './fleet.ts'

// Only a host that is down can be forgotten. The row is kept, so that later reports of the host can be
// rejected.
const forget = statement<{ id: string }, { id: string }>(
  'host_forget',
  `UPDATE hosts SET forgotten_at = coalesce(forgotten_at, slipway_now())
   WHERE id = :id AND state = 'down' RETURNING id`,
)

const recall = statement<{ id: string }, { location: string; name: string }>(
  'host_recall',
  `UPDATE hosts SET forgotten_at = NULL, is_schedulable = true, is_draining = false
   WHERE location = :location AND name = :name AND forgotten_at IS NOT NULL RETURNING id`,
)

/**
 * Locks every VM of the host, including VMs that were deleted while it was down, and returns which of them need
 * the host. VMs are always locked before their host.
 */
export const lockVmsOfHost = statement<{ id: string; lives_on_host: boolean }, { id: string }, Tx>(
  'host_lock_vms',
  `SELECT v.id, ${livesOnHost} AS lives_on_host
   FROM vms v JOIN hosts h ON h.id = v.host_id JOIN locations l ON l.name = h.location
   WHERE h.id = :id ORDER BY v.id FOR UPDATE OF v`,
).allBy('id')

export const removeHostGpus = statement<never, { id: string }, Tx>(
  'host_lose_gpus',
  `UPDATE gpus SET state = 'gone', vm_id = NULL, quarantined_at = NULL, held_for = NULL, held_kind = NULL
   WHERE host_id = :id`,
).runBy('id')

export const lockDisksOfHost = statement<{ id: string; project_id: string }, { id: string }, Tx>(
  'host_lock_disks',
  'SELECT id, project_id FROM disks WHERE host_id = :id ORDER BY id FOR UPDATE',
).allBy('id')

/** Also detaches the disk, because a disk without a host is not attached. */
export const unpinLostDisk = statement<never, { diskId: string }, Tx>(
  'host_unpin_disk',
  `WITH detached AS (DELETE FROM disk_attachments WHERE disk_id = :diskId)
   UPDATE disks SET host_id = NULL WHERE id = :diskId`,
).runBy('diskId')

const namesOf = statement<{ name: string }, { location: string }>(
  'host_forgotten',
  `SELECT name FROM hosts WHERE location = :location AND forgotten_at IS NOT NULL AND state = 'down'`,
)

/** Locks the host. Returns false if it is not down. */
export const markHostForgotten = async (tx: Tx, id: string): Promise<boolean> =>
  (await forget.one(tx, { id })) !== undefined

/** Lets a forgotten host of this name report again. Returns its id, if there is one. */
export const readmitHost = async (tx: Tx, location: string, name: string): Promise<string | undefined> =>
  (await recall.one(tx, { location, name }))?.id

/** Returns the names of the forgotten hosts. Their reports are rejected. */
export const listForgottenHosts = async (db: Queryable, location: string): Promise<Set<string>> =>
  new Set((await namesOf.all(db, { location })).map(({ name }) => name))
