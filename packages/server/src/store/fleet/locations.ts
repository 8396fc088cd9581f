import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface LocationRow {
  name: string
  region: string
  zone: string
  description: string
  engine: 'simulated' | 'qemu' | 'incus'
  storage: 'shared' | 'local'
  /** Null if VMs cannot have a public address here. */
  public_ipv4: string | null
  /** Why the engine cannot be read; '' if it responds. */
  engine_problem: string
}

interface EngineState {
  location: string
  engine: LocationRow['engine']
  /** True if the location's engine has recently returned its inventory. */
  is_answering: boolean
}

interface LocationSettings {
  name: string
  description: string
  engine: LocationRow['engine']
  storage: LocationRow['storage']
  /** '' for none. */
  publicIpv4: string
  position: number
}

const columns = 'name, region, zone, description, engine, storage, public_ipv4::text, engine_problem'

export const listLocations = statement<LocationRow>(
  'location_list',
  `SELECT ${columns} FROM locations ORDER BY position, name`,
).all

export const findLocation = statement<LocationRow, { name: string }>(
  'location_find',
  `SELECT ${columns} FROM locations WHERE name = :name`,
).oneBy('name')

const put = statement<{ is_new: boolean }, LocationSettings & { region: string; zone: string }>(
  'location_put',
  `INSERT INTO locations (name, region, zone, description, engine, storage, public_ipv4, position)
   VALUES (:name, :region, :zone, :description, :engine, :storage, nullif(:publicIpv4, '')::cidr, :position)
   ON CONFLICT (name) DO UPDATE SET description = excluded.description, engine = excluded.engine,
     storage = excluded.storage, public_ipv4 = excluded.public_ipv4, position = excluded.position
   RETURNING xmax = 0 AS is_new`,
)

const inUse = `EXISTS (SELECT FROM hosts WHERE location = l.name) OR EXISTS (SELECT FROM vms WHERE location = l.name)
  OR EXISTS (SELECT FROM disks WHERE location = l.name) OR EXISTS (SELECT FROM subnets WHERE location = l.name)`

/** Removes locations that are not in `names`, except those that hosts, VMs, disks or subnets refer to. */
export const removeUnusedLocations = statement<{ name: string }, { names: string[] }, Tx>(
  'location_remove_unused',
  `DELETE FROM locations l WHERE NOT (name = ANY(:names)) AND NOT (${inUse}) RETURNING name`,
).runBy('names')

const hosting = statement<{ name: string }, { location: string }>(
  'location_hosting',
  `SELECT name FROM locations l
   WHERE name = :location AND (EXISTS (SELECT FROM vms WHERE location = l.name)
                               OR EXISTS (SELECT FROM disks WHERE location = l.name))`,
)

/**
 * Lists default networks without a subnet in one of these locations, with the ranges that are taken. Skips a
 * network if its project already uses the subnet's name.
 */
export const defaultNetworksWithoutSubnet = statement<
  {
    network_id: string
    project_id: string
    cidr: string
    location: string
    taken: string[]
  },
  { locations: string[] }
>(
  'location_networks_without_subnet',
  `SELECT n.id AS network_id, n.project_id, n.cidr::text, l.name AS location,
          ARRAY(SELECT s.cidr::text FROM subnets s WHERE s.network_id = n.id) AS taken
   FROM networks n JOIN projects p ON p.id = n.project_id AND p.deleted_at IS NULL CROSS JOIN locations l
   WHERE n.name = 'default-vpc-network' AND l.name = ANY(:locations)
     AND NOT EXISTS (SELECT FROM subnets s WHERE s.network_id = n.id AND s.location = l.name)
     AND NOT EXISTS (SELECT FROM subnets s WHERE s.project_id = n.project_id AND s.name = 'default-subnet-' || l.name)
   ORDER BY n.id, l.position`,
).allBy('locations')

/**
 * How long a host may go without a report, or a location may go without a process that reads its inventory.
 */
export const silenceMs = 30_000

/** The name of the lease for reading a location's inventory. */
export const reportsTurn = (location: string): string => `reports ${location}`

/** The locations whose inventory no process reads, except `locations`. */
export const unservedLocations = `SELECT l.name FROM locations l
   WHERE NOT (l.name = ANY (:locations::text[]))
     AND NOT EXISTS (SELECT FROM leases t WHERE t.name = '${reportsTurn('')}' || l.name
                       AND t.until > slipway_now() - interval '${silenceMs} milliseconds')`

const unserved = statement<{ name: string }, { locations: string[] }>('location_unserved', unservedLocations)

/** Records that the engine has returned its inventory. */
export const recordEngineResponse = statement<never, { name: string }>(
  'location_engine_answered',
  `UPDATE locations SET engine_answered_at = slipway_now(), engine_problem = '' WHERE name = :name`,
).runBy('name')

/** Records why the engine could not be read, for operators. */
export const recordEngineProblem = statement<never, { name: string; problem: string }>(
  'location_engine_problem',
  'UPDATE locations SET engine_problem = :problem WHERE name = :name AND engine_problem <> :problem',
).runBy('name', 'problem')

const answered = statement<{ name: string }, { name: string; ms: number }>(
  'location_engine_answered_within',
  `SELECT name FROM locations
   WHERE name = :name AND engine_answered_at > slipway_now() - :ms * interval '1 millisecond'`,
)

/** Returns whether the engine has returned its inventory within this time. */
export const hasRespondedWithin = async (db: Queryable, name: string, ms: number): Promise<boolean> =>
  (await answered.one(db, { name, ms })) !== undefined

/**
 * An engine counts as responding if it has responded in the last minute, which is longer than the pause
 * between inspections of a large fleet.
 */
export const listEngineStates = statement<EngineState>(
  'location_engine_answers',
  `SELECT name AS location, engine,
          coalesce(engine_answered_at > slipway_now() - interval '1 minute', false) AS is_answering
   FROM locations ORDER BY position, name`,
).all

/** Returns whether the location is new. The zone is the part of the name after the last hyphen. */
export async function putLocation(tx: Tx, location: LocationSettings): Promise<boolean> {
  const hyphen = location.name.lastIndexOf('-')
  const region = location.name.slice(0, hyphen)
  const zone = location.name.slice(hyphen + 1)
  const row = await put.one(tx, { ...location, region, zone })
  return row!.is_new
}

/** Returns whether there are VMs or disks at the location. */
export async function hasVmsOrDisks(db: Queryable, location: string): Promise<boolean> {
  return (await hosting.one(db, { location })) !== undefined
}

/** Lists the locations whose inventory no process reads, except `locations`. */
export const listUnservedLocations = async (db: Queryable, locations: string[]): Promise<string[]> =>
  (await unserved.all(db, { locations })).map(({ name }) => name)
