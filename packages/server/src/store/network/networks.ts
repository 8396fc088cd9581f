import type { LabelSelector, Labels } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { isBefore, statement } from '../../postgres/statement.ts'

export interface NetworkRow {
  id: string
  name: string
  cidr: string
  created_at: Date
  labels: Labels
  subnets: string[]
}

export interface SubnetRow {
  id: string
  network_id: string
  name: string
  cidr: string
  location: string
  created_at: Date
}

/** A subnet, with the additional data that a new VM needs. */
export interface VmSubnetRow extends SubnetRow {
  network_cidr: string
  /** True if the hosts of its location carry a range for only one network at a time (`carried-ranges.ts`). */
  is_bridged: boolean
}

const selectNetwork = `
  SELECT n.id, n.name, n.cidr::text AS cidr, n.created_at, n.labels,
         ARRAY(SELECT s.id::text FROM subnets s WHERE s.network_id = n.id ORDER BY s.id) AS subnets
  FROM networks n`
const selectSubnet = 'SELECT id, network_id, name, cidr::text AS cidr, location, created_at FROM subnets'

interface NewNetwork {
  id: string
  projectId: string
  name: string
  cidr: string
  labels: Labels
}

interface NewSubnet {
  id: string
  projectId: string
  networkId: string
  name: string
  cidr: string
  location: string
}

export const findNetwork = statement<NetworkRow, { projectId: string; id: string }>(
  'network_by_id',
  `${selectNetwork} WHERE n.project_id = :projectId AND n.id = :id`,
).oneBy('projectId', 'id')
const networkList = statement<
  NetworkRow,
  { projectId: string; beforeId: string | null; limit: number } & LabelParams
>(
  'network_list',
  `${selectNetwork} WHERE n.project_id = :projectId AND ${isBefore('n.id')}
     AND ${fitsLabels('n.labels')}
   ORDER BY n.id DESC LIMIT :limit`,
)
export const insertNetwork = statement<never, NewNetwork, Tx>(
  'network_insert',
  'INSERT INTO networks (id, project_id, name, cidr, labels) VALUES (:id, :projectId, :name, :cidr, :labels)',
).run
// Null leaves a column unchanged.
const networkUpdate = statement<never, { id: string; name: string | null; labels: Labels | null }>(
  'network_update',
  'UPDATE networks SET name = coalesce(:name, name), labels = coalesce(:labels, labels) WHERE id = :id',
)
export const deleteNetworkRow = statement<never, { id: string }, Tx>(
  'network_delete',
  'DELETE FROM networks WHERE id = :id',
).runBy('id')
export const lockNetwork = statement<{ id: string }, { projectId: string; id: string }, Tx>(
  'network_lock',
  'SELECT id FROM networks WHERE project_id = :projectId AND id = :id FOR UPDATE',
).oneBy('projectId', 'id')
const networkRules = statement<{ count: number }, { id: string }>(
  'network_rules',
  'SELECT count(*) AS count FROM firewall_rules WHERE network_id = :id',
)

export const findSubnet = statement<SubnetRow, { projectId: string; id: string }>(
  'subnet_by_id',
  `${selectSubnet} WHERE project_id = :projectId AND id = :id`,
).oneBy('projectId', 'id')
export const listSubnets = statement<
  SubnetRow,
  { projectId: string; beforeId: string | null; limit: number }
>(
  'subnet_list',
  `${selectSubnet} WHERE project_id = :projectId AND ${isBefore('id')}
   ORDER BY id DESC LIMIT :limit`,
).allBy('projectId', 'beforeId', 'limit')
export const insertSubnet = statement<never, NewSubnet, Tx>(
  'subnet_insert',
  `INSERT INTO subnets (id, project_id, network_id, name, cidr, location)
   VALUES (:id, :projectId, :networkId, :name, :cidr, :location)`,
).run
export const setSubnetName = statement<never, { id: string; name: string }, Tx>(
  'subnet_set_name',
  'UPDATE subnets SET name = :name WHERE id = :id',
).runBy('id', 'name')
export const deleteSubnetRow = statement<never, { id: string }, Tx>(
  'subnet_delete',
  'DELETE FROM subnets WHERE id = :id',
).runBy('id')
export const lockSubnet = statement<{ id: string }, { projectId: string; id: string }, Tx>(
  'subnet_lock',
  'SELECT id FROM subnets WHERE project_id = :projectId AND id = :id FOR UPDATE',
).oneBy('projectId', 'id')
const subnetVms = statement<{ count: number }, { id: string }>(
  'subnet_vms',
  'SELECT count(*) AS count FROM vms WHERE subnet_id = :id',
)
/**
 * Finds the given subnet, or the project's default one at the location: that of the default network, or the
 * oldest one if there is no default network.
 */
export const findSubnetFor = statement<
  VmSubnetRow,
  { projectId: string; location: string; subnetId: string | null }
>(
  'subnet_for_vm',
  `SELECT s.id, s.network_id, s.name, s.cidr::text AS cidr, s.location, s.created_at, n.cidr::text AS network_cidr,
          EXISTS (SELECT FROM hosts h WHERE h.location = s.location AND h.capabilities ->> 'network' = 'bridge')
            AS is_bridged
   FROM subnets s JOIN networks n ON n.id = s.network_id
   WHERE s.project_id = :projectId
     AND CASE WHEN :subnetId::uuid IS NULL THEN s.location = :location ELSE s.id = :subnetId END
   ORDER BY n.name = 'default-vpc-network' DESC, s.id LIMIT 1`,
).oneBy('projectId', 'location', 'subnetId')

export const listNetworks = (
  db: Queryable,
  filter: { projectId: string; labels: LabelSelector | null },
  beforeId: string | null,
  limit: number,
) => networkList.all(db, { projectId: filter.projectId, ...labelParams(filter.labels), beforeId, limit })
export const updateNetwork = (tx: Tx, id: string, change: { name?: string; labels?: Labels }) =>
  networkUpdate.run(tx, { id, name: change.name ?? null, labels: change.labels ?? null })
export const countNetworkRules = async (db: Queryable, id: string) =>
  (await networkRules.one(db, { id }))?.count ?? 0

export const countSubnetVms = async (db: Queryable, id: string) =>
  (await subnetVms.one(db, { id }))?.count ?? 0
