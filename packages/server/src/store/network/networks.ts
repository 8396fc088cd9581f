import { type Queryable, statement, type Tx } from '../database.ts'

export interface NetworkRow {
  id: string
  name: string
  cidr: string
  created_at: Date
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

const selectNetwork = `
  SELECT n.id, n.name, n.cidr::text AS cidr, n.created_at,
         ARRAY(SELECT s.id::text FROM subnets s WHERE s.network_id = n.id ORDER BY s.id) AS subnets
  FROM networks n`
const selectSubnet = 'SELECT id, network_id, name, cidr::text AS cidr, location, created_at FROM subnets'

const networkById = statement<NetworkRow, [string, string]>(
  'network_by_id',
  `${selectNetwork} WHERE n.project_id = $1 AND n.id = $2`,
)
const networkList = statement<NetworkRow, [string, string | null, number]>(
  'network_list',
  `${selectNetwork} WHERE n.project_id = $1 AND ($2::uuid IS NULL OR n.id < $2) ORDER BY n.id DESC LIMIT $3`,
)
const networkInsert = statement<never, [string, string, string, string]>(
  'network_insert',
  'INSERT INTO networks (id, project_id, name, cidr) VALUES ($1, $2, $3, $4)',
)
const networkDelete = statement<never, [string]>('network_delete', 'DELETE FROM networks WHERE id = $1')
const networkLock = statement<{ id: string }, [string, string]>(
  'network_lock',
  'SELECT id FROM networks WHERE project_id = $1 AND id = $2 FOR UPDATE',
)
const networkRules = statement<{ count: number }, [string]>(
  'network_rules',
  'SELECT count(*) AS count FROM firewall_rules WHERE network_id = $1',
)

const subnetById = statement<SubnetRow, [string, string]>(
  'subnet_by_id',
  `${selectSubnet} WHERE project_id = $1 AND id = $2`,
)
const subnetList = statement<SubnetRow, [string, string | null, number]>(
  'subnet_list',
  `${selectSubnet} WHERE project_id = $1 AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3`,
)
const subnetInsert = statement<never, [string, string, string, string, string, string]>(
  'subnet_insert',
  'INSERT INTO subnets (id, project_id, network_id, name, cidr, location) VALUES ($1, $2, $3, $4, $5, $6)',
)
const subnetDelete = statement<never, [string]>('subnet_delete', 'DELETE FROM subnets WHERE id = $1')
const subnetLock = statement<{ id: string }, [string, string]>(
  'subnet_lock',
  'SELECT id FROM subnets WHERE project_id = $1 AND id = $2 FOR UPDATE',
)
const subnetVms = statement<{ count: number }, [string]>(
  'subnet_vms',
  'SELECT count(*) AS count FROM vms WHERE subnet_id = $1',
)
// The oldest network's subnet first: that is the default one until somebody removes it.
const subnetFor = statement<SubnetRow & { network_cidr: string }, [string, string, string | null]>(
  'subnet_for_vm',
  `SELECT s.id, s.network_id, s.name, s.cidr::text AS cidr, s.location, s.created_at, n.cidr::text AS network_cidr
   FROM subnets s JOIN networks n ON n.id = s.network_id
   WHERE s.project_id = $1 AND CASE WHEN $3::uuid IS NULL THEN s.location = $2 ELSE s.id = $3 END
   ORDER BY n.name = 'default-vpc-network' DESC, s.id LIMIT 1 FOR SHARE OF s`,
)

export const findNetwork = (db: Queryable, projectId: string, id: string) =>
  networkById.one(db, projectId, id)
export const listNetworks = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  networkList.all(db, projectId, beforeId, limit)
export const insertNetwork = (tx: Tx, id: string, projectId: string, name: string, cidr: string) =>
  networkInsert.run(tx, id, projectId, name, cidr)
export const lockNetwork = (tx: Tx, projectId: string, id: string) => networkLock.one(tx, projectId, id)
export const deleteNetworkRow = (tx: Tx, id: string) => networkDelete.run(tx, id)
export const countNetworkRules = async (db: Queryable, id: string) =>
  (await networkRules.one(db, id))?.count ?? 0

export const findSubnet = (db: Queryable, projectId: string, id: string) => subnetById.one(db, projectId, id)
export const listSubnets = (db: Queryable, projectId: string, beforeId: string | null, limit: number) =>
  subnetList.all(db, projectId, beforeId, limit)
export const insertSubnet = (
  tx: Tx,
  s: { id: string; projectId: string; networkId: string; name: string; cidr: string; location: string },
) => subnetInsert.run(tx, s.id, s.projectId, s.networkId, s.name, s.cidr, s.location)
export const lockSubnet = (tx: Tx, projectId: string, id: string) => subnetLock.one(tx, projectId, id)
export const deleteSubnetRow = (tx: Tx, id: string) => subnetDelete.run(tx, id)
export const countSubnetVms = async (db: Queryable, id: string) => (await subnetVms.one(db, id))?.count ?? 0
/** The given subnet, or the project's default one at the location; held against deletion. */
export const findSubnetFor = (tx: Tx, projectId: string, location: string, subnetId: string | null) =>
  subnetFor.one(tx, projectId, location, subnetId)
