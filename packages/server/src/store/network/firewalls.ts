import type { Queryable, Tx } from '../../postgres/database.ts'
import { keyedStatement } from '../../postgres/keyed.ts'
import { shareLock } from '../../postgres/locks.ts'
import { statement } from '../../postgres/statement.ts'
import type { RuleRow } from './rules.ts'

/**
 * SQL for the rules of a network, and the addresses of the resources that they refer to, as one JSON object.
 * Each resource is looked up by its id alone, so that the plan is the same in a database without statistics.
 */
export const networkFirewall = (networkId: string) => `
     (WITH rules AS (SELECT * FROM firewall_rules WHERE network_id = ${networkId} AND state <> 'deleting'),
          named AS (SELECT DISTINCT (e ->> 'resource_id')::uuid AS id
                    FROM rules, jsonb_array_elements(sources || destinations) e WHERE e ->> 'resource_id' <> ''),
          blocks AS (
            SELECT id, coalesce(
              (SELECT CASE WHEN v.deleted_at IS NULL AND v.state <> 'STATE_DELETING' THEN
                 to_jsonb(array_remove(ARRAY[host(v.private_address), host(v.public_address)], NULL)) END
               FROM vms v WHERE v.id = named.id),
              (SELECT jsonb_build_array(s.cidr::text) FROM subnets s WHERE s.id = named.id),
              (SELECT jsonb_build_array(n.cidr::text) FROM networks n WHERE n.id = named.id)) AS cidrs
            FROM named)
     SELECT jsonb_build_object(
       'rules', coalesce((SELECT jsonb_agg(to_jsonb(rules)) FROM rules), '[]'),
       'resolved', coalesce((SELECT jsonb_object_agg(id, cidrs) FILTER (WHERE cidrs IS NOT NULL) FROM blocks), '{}')))`

const ofNetwork = keyedStatement<{ firewall: NetworkFirewall }, { networkId: string }>(
  'firewall_of_network',
  `SELECT w.network_id AS "networkId", ${networkFirewall('w.network_id')} AS firewall
   FROM unnest(:networkId::uuid[]) AS w (network_id)`,
)

/**
 * SQL assignments that mark a VM's firewall as outdated since the earliest missing change, and as due
 * immediately.
 */
export const firewallDue = `firewall_next_at = slipway_now(),
          firewall_behind_since = least(firewall_behind_since, slipway_now())`

// Locks VMs in id order, like every statement that writes the firewalls of several VMs.
const outdateNetwork = statement<never, { networkId: string; exceptIds: string[] }>(
  'firewall_want_network',
  `WITH concerned AS MATERIALIZED (
     SELECT id FROM vms WHERE network_id = :networkId AND id <> ALL (:exceptIds::uuid[]) ORDER BY id FOR NO KEY UPDATE)
   UPDATE vms v SET firewall_wanted = firewall_wanted + 1, ${firewallDue}
   FROM concerned WHERE v.id = concerned.id`,
)

const naming = statement<{ network_id: string }, { vmIds: string[]; projectIds: string[] }>(
  'firewall_networks_naming',
  `SELECT DISTINCT r.network_id FROM unnest(:vmIds::uuid[], :projectIds::uuid[]) AS g (vm_id, project_id)
   JOIN firewall_rules r ON r.project_id = g.project_id
     AND (r.sources @> jsonb_build_array(jsonb_build_object('resource_id', g.vm_id))
          OR r.destinations @> jsonb_build_array(jsonb_build_object('resource_id', g.vm_id)))
   ORDER BY r.network_id`,
)

/** Records that the engine does not have the VM's firewall. */
export const markFirewallLost = statement<never, { vmId: string }>(
  'firewall_not_applied',
  `UPDATE vms SET firewall_wanted = greatest(firewall_wanted, firewall_applied) + 1, ${firewallDue}
   WHERE id = :vmId`,
).runBy('vmId')

export type NetworkFirewall = { rules: RuleRow[]; resolved: Record<string, string[]> }

export async function firewallOfNetwork(db: Queryable, networkId: string): Promise<NetworkFirewall> {
  return (await ofNetwork.one(db, { networkId }))!.firewall
}

/** Marks the firewalls of all VMs of the network as outdated, except those of `exceptIds`. */
export async function markFirewallsOutdated(
  tx: Tx,
  networkId: string,
  exceptIds: string[] = [],
): Promise<void> {
  if ((await outdateNetwork.run(tx, { networkId, exceptIds })) > 0) await shareLock(tx, 'returningHosts')
}

/**
 * Marks firewalls as outdated in networks whose rules refer to these VMs, except the firewalls of the VMs
 * themselves.
 */
export async function markReferringFirewallsOutdated(
  tx: Tx,
  vms: { id: string; project_id: string }[],
): Promise<void> {
  const vmIds = vms.map(({ id }) => id)
  const networks = await naming.all(tx, { vmIds, projectIds: vms.map(({ project_id }) => project_id) })
  for (const { network_id } of networks) await markFirewallsOutdated(tx, network_id, vmIds)
}

export const findVmByAddress = statement<{ id: string }, { projectId: string; address: string }>(
  'vm_by_address',
  `SELECT id FROM vms WHERE project_id = :projectId AND deleted_at IS NULL
   AND (private_address = :address::inet OR public_address = :address::inet) LIMIT 1`,
).oneBy('projectId', 'address')
