import { Database, type Tx } from '@slipway/server/postgres/database.ts'
import { stampEvents } from '@slipway/server/store/events/events.ts'
import { databaseUrlOf } from './launcher.ts'

/** A statement that fills a large table can take many minutes. */
const fillMs = 24 * 3_600_000

/** Opens the database of a running server. */
export const openStore = (dataDir: string): Database =>
  new Database({ url: databaseUrlOf(dataDir), poolSize: 2, responseMs: fillMs, onError: () => {} })

/** The number of rows at scale 1. */
export const fullSize = { vms: 1_000_000, hosts: 20_000, operations: 10_000_000, events: 40_000_000 }

export interface Growth {
  vms: number
  /** An offset for the numbers of the VMs, which are part of names and MAC addresses. */
  after: number
  /** Finished operations and stamped events, distributed over the new VMs. */
  operations: number
  events: number
  location: string
  /** The projects of the VMs. Their subnets must have enough free addresses. */
  projectIds: string[]
  /** The VMs to copy, which the service created: one is running, the other is shut off. */
  templates: { running: string; shutOff: string }
}

/** How many of a host's eight GPUs are claimed; the others stay free for the measurement. */
const claimedPerHost = 4

/**
 * Adds VMs with their dependent rows (claims, engine objects, meters, quotas) and their history (operations,
 * events), as if the service had created them. All invariants of the database hold afterwards. Runs in one
 * transaction, as a superuser. Rows are copies of the templates' rows with other keys, so that a new column
 * needs no change here.
 */
export async function growRows(database: Database, growth: Growth): Promise<void> {
  const { templates, location, projectIds } = growth
  // The template's event must have a position before it is copied.
  await stampEvents(database, true)
  await database.transaction(async (tx) => {
    const run = (text: string, values?: unknown[]) => tx.query({ text, ...(values && { values }) })
    for (const setting of [
      'statement_timeout = 0',
      'idle_in_transaction_session_timeout = 0',
      'synchronous_commit = off',
      `work_mem = '256MB'`,
      `maintenance_work_mem = '1GB'`,
      // The planner cannot estimate the length of a series, and a nested loop over a million rows takes too
      // long.
      'enable_nestloop = off',
    ])
      await run(`SET LOCAL ${setting}`)
    // Foreign keys and triggers are slow, because they run for each row. They can be disabled, because the
    // copied rows are consistent.
    await run('SET LOCAL session_replication_role = replica')
    await run(plan, [projectIds, location, growth.vms, claimedPerHost, growth.after, templates.running])
    await run('CREATE INDEX ON grown_vms (n)')
    await run('ANALYZE grown_vms')
    for (const [template, isRunning] of [
      [templates.running, true],
      [templates.shutOff, false],
    ] as const) {
      const source = `(SELECT * FROM grown_vms WHERE is_running = ${isRunning}) g`
      await copyRows(tx, 'vms', `t.id = '${template}'`, source, vmColumns)
      await copyRows(tx, 'simulated_vms', `t.id = '${template}'`, source, engineColumns)
    }
    const restore = await dropIndexes(tx, ['operations', 'events'])
    const bySeries = (count: number) =>
      `(SELECT i, v.* FROM generate_series(1, ${count}) i JOIN grown_vms v ON v.n = (i - 1) % ${growth.vms} + 1) g`
    await copyRows(
      tx,
      'operations',
      `t.id = (SELECT id FROM operations WHERE resource_id = '${templates.running}' LIMIT 1)`,
      bySeries(growth.operations),
      operationColumns(growth.operations),
    )
    // Copies the shortest event, so that the service's later events do not fit into the free space of each
    // page. In a database with real history, there is no such free space.
    await copyRows(
      tx,
      'events',
      `t.id = (SELECT id FROM events e WHERE resource_id = '${templates.running}' ORDER BY pg_column_size(e) LIMIT 1)`,
      `${bySeries(growth.events)}, event_counter c`,
      eventColumns(growth.events),
    )
    await restore()
    await run('UPDATE event_counter SET last_position = last_position + $1', [growth.events])
    // Enables the triggers again, because they count what the following statements change.
    await run('SET LOCAL session_replication_role = origin')
    await run(claims)
    const isMeter = `t.resource_id = '${templates.running}' AND upper_inf(t.period)`
    const source = '(SELECT * FROM grown_vms WHERE is_running) g'
    await copyRows(tx, 'usage_intervals', isMeter, source, meterColumns)
    await run(quotas, [templates.running])
  })
}

/**
 * Drops indexes, because building an index after all rows are inserted is much faster. Returns a function
 * that creates them again.
 */
async function dropIndexes(tx: Tx, tables: string[]): Promise<() => Promise<void>> {
  const { rows } = await tx.query({
    text: `SELECT i.indexrelid::regclass AS name, pg_get_indexdef(i.indexrelid) AS definition
           FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
           WHERE c.relname = ANY ($1) AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)`,
    values: [tables],
  })
  for (const { name } of rows) await tx.query({ text: `DROP INDEX ${name}` })
  return async () => {
    for (const { definition } of rows) await tx.query({ text: definition })
  }
}

/**
 * The new VMs: a running VM for each GPU to be claimed, and the rest shut off, distributed over the subnets.
 * Counts are in subqueries, so that the planner can use a hash join.
 */
const plan = `
  CREATE TEMP TABLE grown_vms ON COMMIT DROP AS
  WITH places AS (
         SELECT row_number() OVER (ORDER BY id) - 1 AS place, id AS subnet_id, network_id, project_id, cidr
         FROM subnets WHERE project_id = ANY ($1) AND location = $2),
       numbered AS (
         SELECT g.*, h.name AS host, row_number() OVER (PARTITION BY g.host_id ORDER BY g.pci_address) AS nth
         FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE h.location = $2 AND g.state = 'free'
           AND h.family = (SELECT family FROM vms WHERE id = $6)),
       claimed AS (
         SELECT row_number() OVER (ORDER BY nth, host_id) AS n, id AS gpu_id, host_id, host, pci_address
         FROM numbered WHERE nth <= $4),
       hosts_by_number AS (SELECT row_number() OVER (ORDER BY id) - 1 AS h, id, name
                           FROM hosts WHERE location = $2 AND family = (SELECT family FROM vms WHERE id = $6)),
       firewalls AS (
         SELECT own.network_id, jsonb_agg(rule || jsonb_build_object('ruleId', own.id) ORDER BY nth) AS firewall
         FROM simulated_vms t, jsonb_array_elements(t.firewall) WITH ORDINALITY AS e (rule, nth)
         JOIN firewall_rules theirs ON theirs.id = (rule ->> 'ruleId')::uuid
         JOIN firewall_rules own ON own.name = theirs.name
         WHERE t.id = $6 AND own.project_id = ANY ($1) GROUP BY own.network_id)
  SELECT n, n + $5 AS number, $2::text AS location, uuidv7((n - $3::bigint) * interval '1 second') AS id, p.project_id, network_id, p.subnet_id,
         p.cidr::inet + 16 + (n - 1) / (SELECT count(*) FROM places) AS private_address,
         c.gpu_id IS NOT NULL AS is_running, c.gpu_id, c.pci_address, coalesce(c.host_id, o.id) AS host_id, coalesce(c.host, o.name) AS host, f.firewall
  FROM generate_series(1, $3::bigint) n
  JOIN places p ON p.place = (n - 1) % (SELECT count(*) FROM places)
  JOIN firewalls f USING (network_id)
  JOIN hosts_by_number o ON o.h = n % (SELECT count(*) FROM hosts_by_number)
  LEFT JOIN claimed c USING (n)`

const vmColumns = {
  id: 'g.id',
  project_id: 'g.project_id',
  name: `'grown-' || g.number`,
  location: 'g.location',
  host_id: 'g.host_id',
  os_disk_id: 'gen_random_uuid()',
  interface_id: 'gen_random_uuid()',
  network_id: 'g.network_id',
  subnet_id: 'g.subnet_id',
  mac_address: `'06' || regexp_replace(lpad(to_hex(g.number), 10, '0'), '(..)', ':\\1', 'g')`,
  private_address: 'g.private_address',
  public_address: 'NULL',
  public_address_id: 'NULL',
  // A copy has no closed meters.
  spent_usd_ms: '0',
}

const engineColumns = {
  id: 'g.id',
  location: 'g.location',
  host: 'g.host',
  gpus: `CASE WHEN g.is_running THEN ARRAY[g.pci_address] ELSE t.gpus END`,
  firewall: 'g.firewall',
  // Only the template has the public address.
  spec: `jsonb_set(replace(t.spec::text, t.id::text, g.id::text)::jsonb, '{network,publicAddress}', '""')`,
}

/** One operation per second, until a minute ago. */
const operationColumns = (count: number) => ({
  id: `uuidv7((g.i - ${count} - 60) * interval '1 second')`,
  project_id: 'g.project_id',
  resource_id: 'g.id',
  ...Object.fromEntries(
    ['run_at', 'started_at', 'completed_at'].map((name) => [
      name,
      `slipway_now() + (g.i - ${count} - 60) * interval '1 second'`,
    ]),
  ),
})

const eventColumns = (count: number) => ({
  id: 'uuidv7()',
  position: 'c.last_position + g.i',
  project_id: 'g.project_id',
  resource_id: 'g.id::text',
  created_at: `slipway_now() + (g.i - ${count} - 60) * interval '200 milliseconds'`,
})

const meterColumns = {
  project_id: 'g.project_id',
  resource_id: 'g.id',
  location: 'g.location',
}

const claims = `UPDATE gpus SET state = 'claimed', vm_id = g.id FROM grown_vms g WHERE gpus.id = g.gpu_id`

/** Adds the VMs and the GPUs of running VMs to the quotas; a stopped VM uses no GPU quota. */
const quotas = `
  UPDATE quotas q SET used = q.used + CASE q.name WHEN 'vms' THEN g.vms ELSE g.running * t.gpu_count END
  FROM vms t, (SELECT project_id, count(*) AS vms, count(*) FILTER (WHERE is_running) AS running
               FROM grown_vms GROUP BY project_id) g
  WHERE t.id = $1 AND q.project_id = g.project_id AND q.name IN ('vms', t.family || '_gpus')`

/**
 * Copies the template's row for each row of the source, with these columns changed. Generated columns are
 * left out.
 */
async function copyRows(
  tx: Tx,
  table: string,
  template: string,
  source: string,
  changes: Record<string, string>,
): Promise<void> {
  const { rows } = await tx.query({
    text: `SELECT column_name AS name FROM information_schema.columns
           WHERE table_schema = 'public' AND table_name = $1 AND is_identity = 'NO' AND is_generated = 'NEVER'`,
    values: [table],
  })
  const names: string[] = rows.map(({ name }) => name)
  const values = names.map((name) => changes[name] ?? `t.${name}`)
  await tx.query({
    text: `INSERT INTO ${table} (${names.join()}) SELECT ${values.join()} FROM ${table} t, ${source} WHERE ${template}`,
  })
}
