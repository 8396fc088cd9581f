import { createHmac } from 'node:crypto'
import pg from 'pg'

/** The role that the service works as. It owns its database and nothing else: it runs no programs and reads no files. */
export const serviceRole = 'slipway_service'

/** Made from the superuser's, which the data directory holds: whoever learns this one does not learn that one. */
export const servicePassword = (superuserPassword: string): string =>
  createHmac('sha256', superuserPassword).update(serviceRole).digest('hex')

/** Makes role and database unless they are there. Call it with the data directory locked. */
export async function ensureServiceDatabase(
  keeper: pg.Client,
  database: string,
  password: string,
): Promise<void> {
  const role = await keeper.query('SELECT FROM pg_roles WHERE rolname = $1', [serviceRole])
  if (role.rowCount === 0)
    await keeper.query(`CREATE ROLE ${serviceRole} LOGIN PASSWORD ${pg.escapeLiteral(password)}`)
  const known = await keeper.query('SELECT FROM pg_database WHERE datname = $1', [database])
  if (known.rowCount === 0) await keeper.query(`CREATE DATABASE ${database} OWNER ${serviceRole}`)
}

// What belongs to an extension stays with it, and what belongs to a table goes with the table.
const handOver = `
DO $$
DECLARE thing record;
BEGIN
  FOR thing IN
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
    ) things
    WHERE owner <> '${serviceRole}'::regrole
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = class AND d.objid = things.oid
                        AND (d.deptype = 'e' OR kind = 'SEQUENCE' AND d.deptype IN ('a', 'i')))
  LOOP
    EXECUTE thing.command;
  END LOOP;
END $$`

/**
 * Gives the service what a superuser made in its database, for example while restoring a backup. All or nothing; at most
 * starts there is nothing to do.
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
