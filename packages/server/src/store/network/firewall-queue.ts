import type { Database, Queryable, Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

/** A VM with an outdated firewall: its engine does not have the newest one yet. */
export interface OutdatedVm {
  id: string
  host: string
  location: string
  network_id: string
  subnet_id: string
  private_address: string
  public_address: string | null
  firewall_wanted: number
  firewall_attempts: number
  /** True if its host responds and the VM is not being removed. */
  is_reachable: boolean
}

/** The duration of a claim. It is longer than any engine call that applies a firewall. */
const claimMs = 20_000

// The index vms_firewall_behind contains only these VMs. A VM that is being created gets the newest rules
// anyway.
const isOutdated = 'v.firewall_applied < v.firewall_wanted AND v.firewall_applied > 0'
/** The SQL condition for a VM `v` whose firewall should be applied now. */
export const isFirewallDue = `${isOutdated} AND v.firewall_next_at <= slipway_now()`
const isStaying = `v.deleted_at IS NULL AND v.state <> 'STATE_DELETING'`

const claimed = `
  UPDATE vms v SET firewall_next_at = slipway_now() + :claimMs * interval '1 millisecond' FROM due WHERE v.id = due.id
  RETURNING v.id, coalesce(due.host, '') AS host, v.location, v.network_id, v.subnet_id, v.private_address,
            v.public_address, v.firewall_wanted, v.firewall_attempts, due.is_reachable`

// A claim moves the VM to the end of the queue, so that other VMs come first even if the attempt or its
// worker fails. VMs that cannot be reached are claimed as well, so that they are not read again each time.
const claimDue = statement<
  OutdatedVm,
  { location: string; projectId: string; networkId: string | null; limit: number; claimMs: number }
>(
  'firewall_claim',
  `WITH due AS MATERIALIZED (
     SELECT v.id, h.name AS host, ${isStaying} AND coalesce(h.state <> 'down', false) AS is_reachable
     FROM vms v LEFT JOIN hosts h ON h.id = v.host_id
     WHERE v.location = :location AND v.project_id = :projectId AND ${isFirewallDue}
       AND (:networkId::uuid IS NULL OR v.network_id = :networkId)
     ORDER BY v.firewall_next_at LIMIT :limit FOR NO KEY UPDATE OF v SKIP LOCKED)
   ${claimed}`,
)

// Also claims VMs that are not due, because these hosts count as down until their firewalls are up to date.
const claimOnHosts = statement<
  OutdatedVm,
  { location: string; hosts: string[]; limit: number; claimMs: number }
>(
  'firewall_claim_on_hosts',
  `WITH due AS MATERIALIZED (
     SELECT v.id, h.name AS host, true AS is_reachable
     FROM hosts h JOIN vms v ON v.host_id = h.id
     WHERE h.location = :location AND h.name = ANY (:hosts) AND h.state = 'down' AND ${isOutdated} AND ${isStaying}
     ORDER BY v.firewall_next_at LIMIT :limit FOR NO KEY UPDATE OF v SKIP LOCKED)
   ${claimed}`,
)

/**
 * Lists at most `limit` projects after `after`, ordered by id, that have VMs with outdated firewalls in the
 * location. It jumps from one project to the next in the index, without reading the VMs in between.
 */
export const listOutdatedProjects = statement<
  { project_id: string; is_due: boolean },
  { location: string; after: string; limit: number }
>(
  'firewall_projects_behind',
  `WITH RECURSIVE behind (project_id) AS (
     (SELECT v.project_id FROM vms v
      WHERE v.location = :location AND ${isOutdated} AND v.project_id > :after ORDER BY v.project_id LIMIT 1)
     UNION ALL
     SELECT (SELECT v.project_id FROM vms v
             WHERE v.location = :location AND ${isOutdated} AND v.project_id > b.project_id ORDER BY v.project_id LIMIT 1)
     FROM behind b WHERE b.project_id IS NOT NULL)
   SELECT b.project_id, EXISTS (SELECT FROM vms v WHERE v.location = :location AND v.project_id = b.project_id
                                AND ${isFirewallDue}) AS is_due
   FROM behind b WHERE b.project_id IS NOT NULL LIMIT :limit`,
).allBy('location', 'after', 'limit')

const networkOutdated = statement<{ is_behind: boolean }, { networkId: string; projectId: string }>(
  'firewall_network_behind',
  `SELECT EXISTS (
     SELECT FROM (SELECT DISTINCT location FROM subnets WHERE network_id = :networkId) s
     JOIN vms v ON v.location = s.location AND v.project_id = :projectId AND v.network_id = :networkId
     JOIN hosts h ON h.id = v.host_id
     WHERE ${isOutdated} AND ${isStaying} AND h.state <> 'down') AS is_behind`,
)

const locations = statement<{ location: string }, { networkId: string }>(
  'network_locations',
  'SELECT DISTINCT location FROM subnets WHERE network_id = :networkId',
)

const outdatedHosts = statement<{ host_id: string }, { hostIds: string[] }>(
  'firewall_hosts_behind',
  `SELECT DISTINCT v.host_id FROM vms v WHERE v.host_id = ANY (:hostIds::uuid[]) AND ${isOutdated} AND ${isStaying}`,
)

const vmsOnDownHosts = statement<{ exists: boolean }, { location: string; hosts: string[] }>(
  'vm_on_down_hosts_exists',
  `SELECT EXISTS (SELECT FROM hosts h JOIN vms v ON v.host_id = h.id
                  WHERE h.location = :location AND h.name = ANY (:hosts) AND h.state = 'down') AS exists`,
)

// A generation of 0 means that the firewall could not be applied. If the generation is older than the wanted
// one, the firewall remains outdated, and `firewall_behind_since` does not change.
const recordTried = statement<never, Columns<TriedFirewall>>(
  'firewall_settle',
  `WITH tried AS MATERIALIZED (
     SELECT v.id, t.generation, t.pause_ms
     FROM unnest(:id::uuid[], :generation::bigint[], :pauseMs::float8[]) AS t (id, generation, pause_ms)
     JOIN vms v USING (id) ORDER BY v.id FOR NO KEY UPDATE OF v)
   UPDATE vms v SET firewall_applied = greatest(v.firewall_applied, t.generation),
          firewall_attempts = CASE t.generation WHEN 0 THEN v.firewall_attempts + 1 ELSE 0 END,
          firewall_next_at = slipway_now() + t.pause_ms * interval '1 millisecond',
          firewall_behind_since =
            CASE WHEN greatest(v.firewall_applied, t.generation) < v.firewall_wanted THEN v.firewall_behind_since END
   FROM tried t WHERE v.id = t.id`,
)

/** The VMs of a project at a location, in all its networks or in one. */
export interface OutdatedScope {
  location: string
  projectId: string
  networkId: string | null
}

/** Claims VMs that are due, the most overdue first. */
export const claimOutdated = (db: Queryable, scope: OutdatedScope, limit: number) =>
  claimDue.all(db, { ...scope, limit, claimMs })

/** Claims VMs of hosts that are down, starting with those whose last attempt was longest ago. */
export const claimOutdatedOnHosts = (db: Queryable, location: string, hosts: string[], limit: number) =>
  claimOnHosts.all(db, { location, hosts, limit, claimMs })

/** Returns whether a reachable VM of the network has an outdated firewall. */
export const isNetworkOutdated = async (db: Queryable, network: { id: string; projectId: string }) =>
  (await networkOutdated.one(db, { networkId: network.id, projectId: network.projectId }))!.is_behind

export const listNetworkLocations = async (db: Queryable, networkId: string) =>
  (await locations.all(db, { networkId })).map(({ location }) => location)

/** Returns the hosts that have a VM with an outdated firewall. */
export const findOutdatedHosts = async (tx: Tx, hostIds: string[]) =>
  new Set((await outdatedHosts.all(tx, { hostIds })).map(({ host_id }) => host_id))

/** Returns whether any of the hosts is down and has a VM. */
export const hasVmsOnDownHosts = async (tx: Tx, location: string, hosts: string[]) =>
  (await vmsOnDownHosts.one(tx, { location, hosts }))!.exists

export interface TriedFirewall {
  id: string
  /** The generation that the engine has; 0 if it could not be applied. */
  generation: number
  /** The time until the next attempt, if one is needed. */
  pauseMs: number
}

/** Writes the results of attempts. The transaction is retried if it deadlocks with a change of rules. */
export const recordTriedFirewalls = (database: Database, tried: TriedFirewall[]): Promise<number> =>
  database.transaction((tx) => recordTried.run(tx, columns(tried, ['id', 'generation', 'pauseMs'])))
