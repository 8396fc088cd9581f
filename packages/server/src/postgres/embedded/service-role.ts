import { createHmac } from 'node:crypto'
import pg from 'pg'

/** The role of the service. It owns only its database, and can neither run programs nor read files. */
export const serviceRole = 'slipway_service'

/**
 * Derives the password of the service's role from the superuser's password, which is stored in the data
 * directory. The superuser's password cannot be derived from the result.
 */
export const servicePassword = (superuserPassword: string): string =>
  createHmac('sha256', superuserPassword).update(serviceRole).digest('hex')

/** Creates the role and the database if they do not exist. The caller holds the data directory's lock. */
export async function ensureServiceDatabase(
  keeper: pg.Client,
  database: string,
  password: string,
): Promise<void> {
  const role = await keeper.query('SELECT FROM pg_roles WHERE rolname = $1', [serviceRole])
  if (role.rowCount === 0)
    await keeper.query(`CREATE ROLE ${serviceRole} LOGIN PASSWORD ${pg.escapeLiteral(password)}`)
  const existing = await keeper.query('SELECT FROM pg_database WHERE datname = $1', [database])
  if (existing.rowCount === 0)
    await keeper.query(`CREATE DATABASE ${database} OWNER ${serviceRole} STRATEGY file_copy`)
}

// Objects that belong to an extension keep their owner. Objects that belong to a table get the table's new
// owner.
const handOver = `
DO $$
DECLARE entry record;
BEGIN
  FOR entry IN
    SELECT format('ALTER %s %s OWNER TO ${serviceRole}', kind, name) AS command
    FROM (
      SELECT 'pg_class'::regclass AS class, c.oid, c.relowner AS owner, c.oid::regclass::text AS name,
             CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                            ELSE 'TABLE' END AS kind
      FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
      UNION ALL
      SELECT 'pg_proc'::regclass, p.oid, p.proowner, p.oid::regprocedure::text, 'ROUTINE'
      FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
      UNION ALL
      SELECT 'pg_type'::regclass, t.oid, t.typowner, t.oid::regtype::text, 'TYPE'
      FROM pg_type t WHERE t.typnamespace = 'public'::regnamespace AND t.typtype IN ('e', 'd')
    ) objects
    WHERE owner <> '${serviceRole}'::regrole
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = class AND d.objid = objects.oid
                        AND (d.deptype = 'e' OR kind = 'SEQUENCE' AND d.deptype IN ('a', 'i')))
  LOOP
    EXECUTE entry.command;
  END LOOP;
END $$`

/**
 * Makes the service the owner of everything that a superuser created in its database, for example while
 * restoring a backup. Usually there is nothing to do.
 */
export async function giveToService(superuserUrl: string, database: string): Promise<void> {
  const client = new pg.Client({ connectionString: superuserUrl })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('BEGIN')
    const { rowCount } = await client.query(
      `SELECT FROM pg_database WHERE datname = $1 AND datdba <> '${serviceRole}'::regrole`,
      [database],
    )
    if (rowCount) await client.query(`ALTER DATABASE ${database} OWNER TO ${serviceRole}`)
    await client.query(handOver)
    await client.query('COMMIT')
  } finally {
    await client.end()
  }
}
