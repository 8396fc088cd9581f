import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'
import type { RuleRow } from './rules.ts'

// It reads the rules in force on a network, and the addresses of everything that they name.
const ofNetwork = statement<{ rules: RuleRow[]; resolved: Record<string, string[]> }, { networkId: string }>(
  'firewall_of_network',
  `WITH rules AS (SELECT * FROM firewall_rules WHERE network_id = :networkId AND state <> 'deleting'),
        named AS (SELECT DISTINCT (e ->> 'resource_id')::uuid AS id
                  FROM rules, jsonb_array_elements(sources || destinations) e WHERE e ->> 'resource_id' <> ''),
        blocks AS (
          SELECT v.id, to_jsonb(array_remove(ARRAY[host(v.private_address), host(v.public_address)], NULL)) AS cidrs
          FROM vms v JOIN named USING (id) WHERE v.deleted_at IS NULL AND v.state <> 'STATE_DELETING'
          UNION ALL SELECT s.id, jsonb_build_array(s.cidr::text) FROM subnets s JOIN named USING (id)
          UNION ALL SELECT n.id, jsonb_build_array(n.cidr::text) FROM networks n JOIN named USING (id))
   SELECT coalesce((SELECT jsonb_agg(to_jsonb(rules)) FROM rules), '[]') AS rules,
          coalesce((SELECT jsonb_object_agg(id, cidrs) FROM blocks), '{}') AS resolved`,
)

const wantNetwork = statement<never, { networkId: string }>(
  'firewall_want_network',
  'UPDATE vms SET firewall_wanted = firewall_wanted + 1 WHERE network_id = :networkId',
)

const wantReferrers = statement<never, { vmId: string; projectId: string }>(
  'firewall_want_referrers',
  `UPDATE vms SET firewall_wanted = firewall_wanted + 1
   WHERE id <> :vmId AND network_id IN (
     SELECT network_id FROM firewall_rules
     WHERE project_id = :projectId
       AND (sources @> jsonb_build_array(jsonb_build_object('resource_id', :vmId::text))
            OR destinations @> jsonb_build_array(jsonb_build_object('resource_id', :vmId::text))))`,
)

export interface BehindVm {
  id: string
  host: string
  location: string
  network_id: string
  subnet_id: string
  private_address: string
  public_address: string | null
  firewall_wanted: number
}

// Only VMs count that the engine knows and can reach. One whose creation has not yet applied its first firewall takes
// the newest rules anyway, and an unreachable one catches up when it is back.
const behind = statement<BehindVm, { networkId: string | null; most: number }>(
  'firewall_behind',
  `SELECT v.id, h.name AS host, v.location, v.network_id, v.subnet_id, v.private_address, v.public_address, v.firewall_wanted
   FROM vms v JOIN hosts h ON h.id = v.host_id
   WHERE v.firewall_applied < v.firewall_wanted AND v.firewall_applied > 0 AND v.deleted_at IS NULL
     AND v.state NOT IN ('STATE_UNREACHABLE', 'STATE_DELETING') AND h.state <> 'down'
     AND (:networkId::uuid IS NULL OR v.network_id = :networkId)
   ORDER BY v.id LIMIT :most`,
)

const applied = statement<never, { vmId: string; generation: number }>(
  'firewall_applied',
  'UPDATE vms SET firewall_applied = greatest(firewall_applied, :generation) WHERE id = :vmId',
)

const notApplied = statement<never, { vmId: string }>(
  'firewall_not_applied',
  'UPDATE vms SET firewall_wanted = greatest(firewall_wanted, firewall_applied) + 1 WHERE id = :vmId',
)

export async function firewallOfNetwork(db: Queryable, networkId: string) {
  return (await ofNetwork.one(db, { networkId }))!
}

/** Every VM of the network needs its firewall anew. */
export const wantFirewalls = (tx: Tx, networkId: string) => wantNetwork.run(tx, { networkId })
/** A VM goes: whoever has rules that name it needs its firewall anew. */
export const wantFirewallsNaming = (tx: Tx, projectId: string, vmId: string) =>
  wantReferrers.run(tx, { vmId, projectId })
export const findVmsBehind = (db: Queryable, networkId: string | null, most: number) =>
  behind.all(db, { networkId, most })
export const markFirewallApplied = (db: Queryable, vmId: string, generation: number) =>
  applied.run(db, { vmId, generation })
/** The engine turned out not to have it. */
export const markFirewallLost = (db: Queryable, vmId: string) => notApplied.run(db, { vmId })

const vmByAddress = statement<{ id: string }, { projectId: string; address: string }>(
  'vm_by_address',
  `SELECT id FROM vms WHERE project_id = :projectId AND deleted_at IS NULL
   AND (private_address = :address::inet OR public_address = :address::inet) LIMIT 1`,
)

export const findVmByAddress = (db: Queryable, projectId: string, address: string) =>
  vmByAddress.one(db, { projectId, address })
