import type { VmState } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface KnownVm {
  id: string
  state: VmState
  host: string
  firewall_applied: number
  is_hidden: boolean
  is_os_disk_lost: boolean
}

// Lists the VMs that should be on these hosts, except those with an unfinished operation.
const onHosts = statement<KnownVm, { location: string; hosts: string[] }>(
  'vm_on_hosts',
  `SELECT v.id, v.state, h.name AS host, v.firewall_applied, v.deleted_at IS NOT NULL AS is_hidden,
          v.os_disk_lost_at IS NOT NULL AS is_os_disk_lost
   FROM vms v JOIN hosts h ON h.id = v.host_id
   WHERE h.location = :location AND h.name = ANY (:hosts)
     AND NOT EXISTS (SELECT FROM operation_queue q WHERE q.resource_id = v.id)`,
)

// A host that its engine reports as offline is down immediately; its VMs are listed only after the grace
// period.
const onLostHosts = statement<
  { id: string },
  { states: string[]; graceMs: number; afterId: string; limit: number }
>(
  'vm_on_lost_hosts',
  `SELECT v.id FROM hosts h, LATERAL (
     SELECT v.id FROM vms v
     WHERE v.host_id = h.id AND v.state = ANY (:states) AND v.deleted_at IS NULL AND v.id > :afterId
       AND NOT EXISTS (SELECT FROM operation_queue q WHERE q.resource_id = v.id)
     ORDER BY v.id LIMIT :limit) v
   WHERE h.state = 'down'
     AND NOT EXISTS (SELECT FROM host_reports r WHERE r.host_id = h.id
                       AND r.reported_at > slipway_now() - :graceMs * interval '1 millisecond')
   ORDER BY v.id LIMIT :limit`,
)

const lockUnchanged = statement<{ id: string }, { id: string; generation: number }>(
  'vm_lock_unchanged',
  `SELECT v.id FROM vms v WHERE v.id = :id AND v.generation = :generation
     AND NOT EXISTS (SELECT FROM operation_queue q WHERE q.resource_id = v.id) FOR UPDATE`,
)

export const listKnownVms = (db: Queryable, location: string, hosts: string[]) =>
  onHosts.all(db, { location, hosts })
/** Lists the VMs in id order, starting after `afterId`. */
export const listVmsOnLostHosts = (
  db: Queryable,
  states: VmState[],
  graceMs: number,
  afterId: string,
  limit: number,
) => onLostHosts.all(db, { states, graceMs, afterId, limit })
/** Locks the VM, unless its generation has changed or an operation on it is unfinished. */
export const lockUnchangedVm = (tx: Tx, id: string, generation: number) =>
  lockUnchanged.one(tx, { id, generation })
