import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase, query, type TestDatabase } from '@slipway/testing/database.ts'
import { root } from '@slipway/testing/root.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Database } from '../../src/postgres/database.ts'
import { statements } from '../../src/postgres/statement.ts'
import { grownTables, growStore, planForFewTenants, tablesOfFewTenants } from '../support/grown-store.ts'
import { growthOf, type PlanNode } from '../support/plans.ts'

/** These statements may read many rows, for the given reason. */
const exceptions: Record<string, string> = {
  access_keys_revoke_by_name: 'runs only when a demo starts',
  capacity_request_list_open: 'for operators; reads the newest rows until the page is full',
  disk_list_by_falling_usd_per_hour:
    'sorts all disks of the project, because prices are not stored in their rows',
  disk_list_by_usd_per_hour: 'sorts all disks of the project, because prices are not stored in their rows',
  capture_image_by_ref: 'a project has few custom images: the quota of the organization is 50',
  event_list:
    'an operator searches all events by type or actor; reads the newest rows until the page is full',
  event_resources: 'a text search compares the names in all events of the project',
  fleet_counts: 'an operator reads the whole fleet',
  fleet_metrics: 'monitoring reads the whole fleet',
  gpu_fault_days: 'an operator reads the whole fleet, for at most 90 days',
  host_lose_silent: 'one narrow row per host; an index on the report time would be written with each report',
  image_users: 'an operator removes an image',
  location_hosting: 'runs when a process starts with another engine for a location',
  location_remove_unused: 'runs when a process starts',
  operation_admin_list_isStuck_false: 'nearly all operations match',
  operation_admin_list_isStuck_false_state_FAILED: 'all failed operations match',
  operation_admin_list_isStuck_false_state_SUCCEEDED: 'nearly all operations match',
  operation_admin_list_state_SUCCEEDED: 'nearly all operations match',
  organization_has_any: 'it stops at the first row',
  payment_method_expired: 'one row per organization',
  search_organization: 'compares all names of the organization and returns the best matches',
  search_everywhere: 'an operator searches all names; those of VMs are read from an index',
  simulated_host_clear: 'an operator registers a simulated host again',
  simulated_disks: 'an inventory contains everything that the engine has',
  simulated_captures: 'an inventory contains everything that the engine has',
  usage_day_next: 'intervals are read only until the first day is closed',
  vm_list_all: 'skips hidden VMs, which are few',
  vm_list_all_organizationId:
    'an operator lists the VMs of one organization, which belong to different projects',
  vm_record_list_by_falling_usd_per_hour:
    'sorts all VMs of the project, because prices are not stored in their rows',
  vm_record_list_by_usd_per_hour: 'sorts all VMs of the project, because prices are not stored in their rows',
  suggestion_list:
    'reads everything in the project: the packed hours of a day for each running VM, and all disks',
  vm_mass_fault: 'counts the VMs of a location only while several of them are unhealthy',
  alert_list_all: 'counts the VMs of a location only while several of them are unhealthy',
  vm_idle_samples: 'the samples of one VM, of at most a day',
  vm_sample_take: 'the samples of 50 VMs in the previous hour; the planner overestimates how many are left',
  usage_month: 'the request is for a month of several projects',
  usage_resource_day_insert: 'adds up one day of a shard of projects by resource, once',
}

/** These statements may read many rows while a database has no statistics. */
const freshExceptions: Record<string, string> = {
  gpu_fault_new: 'few GPUs have a fault',
  vm_paused_list: 'billing is paused for few VMs',
  operation_admin_list_isStuck_false_state_IN_PROGRESS: 'for operators, and only before the first statistics',
  operation_admin_list_isStuck_true_state_FAILED: 'for operators, and only before the first statistics',
  organization_quota_fill: 'runs when an organization first gets its quotas',
  setup_code_is_needed: 'it stops at the first row',
  webhook_fresh_events: 'a new database has few webhooks',
  webhooks_in_line: 'a new database has few webhooks',
}

/** These statements may read many rows where a project has tens of thousands of VMs. */
const exceptionsForFewTenants: Record<string, string> = {
  usage_label_list: 'the request is for everything in the project in a month',
  usage_rate: 'adds up everything that runs in the project',
  usage_resource_list: 'the request is for everything in the project in a month',
}

let store: TestDatabase
let database: Database
let indexRows: Map<string, number>

beforeAll(async () => {
  store = await createDatabase()
  await growStore(store.url)
  database = new Database({ url: store.url, poolSize: 1 })
  indexRows = await rowsOfIndexes()
  const folder = join(root, 'packages/server/src/store')
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('.ts')) await import(join(folder, name))
})
afterAll(async () => {
  await database?.close()
  await store?.drop()
})

async function rowsOfIndexes(): Promise<Map<string, number>> {
  const indexes = await query<{ name: string; rows: number }>(
    store.url,
    `SELECT relname AS name, reltuples AS rows FROM pg_class WHERE relkind = 'i'`,
  )
  return new Map(indexes.map(({ name, rows }) => [name, rows]))
}

/** Returns where the plan of a prepared statement reads more as tables grow, for any parameter values. */
async function growthOfText(text: string): Promise<string[]> {
  return growthOf(await planOf(database, text), indexRows)
}

async function planOf(db: Database, text: string): Promise<PlanNode> {
  const { rows } = await db.query({ text: `EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}` })
  return rows[0]['QUERY PLAN'][0].Plan
}

test('no statement reads more when the tables have grown, except those listed', async () => {
  const growing: Record<string, string[]> = {}
  for (const [name, text] of statements) {
    // Statements of tests and of --dev run on small databases.
    if (/^(test|dev)_/.test(name)) continue
    const found = await growthOfText(text)
    if (found.length > 0) growing[name] = found
  }
  const isExcepted = ([name]: [string, string[]]) => exceptions[name] !== undefined
  expect(Object.fromEntries(Object.entries(growing).filter((entry) => !isExcepted(entry)))).toEqual({})
  expect(Object.keys(exceptions).filter((name) => !growing[name])).toEqual([])
})

// PostgreSQL uses default estimates until it has first analyzed a table, some time after the first rows were written.
test('no statement reads more in a database without statistics, except those listed', async () => {
  const fresh = await createDatabase()
  // The hosts have reported before the first VM is created.
  await query(
    fresh.url,
    `INSERT INTO locations (name, region, zone, engine, storage, position) VALUES ('a', 'a', 'a', 'simulated', 'local', 0);
     ALTER TABLE hosts SET (autovacuum_enabled = off);
     ALTER TABLE host_reports SET (autovacuum_enabled = off);
     INSERT INTO hosts (id, name, location, family, state, usable_gpus)
     SELECT gen_random_uuid(), 'h' || n, 'a', 'a40', 'up', 8 FROM generate_series(1, 2000) n;
     INSERT INTO host_reports (host_id, reported_at, fingerprint) SELECT id, now(), name FROM hosts`,
  )
  const plannedFresh = new Database({ url: fresh.url, poolSize: 1 })
  onTestFinished(async () => {
    await plannedFresh.close()
    await fresh.drop()
  })
  const growing: Record<string, string[]> = {}
  for (const [name, text] of statements) {
    // Lists by price sort all VMs of a project, as the exceptions explain.
    const isByPrice = /_by_(falling_)?usd_per_hour/.test(name)
    if (/^(test|dev)_/.test(name) || exceptions[name] || isByPrice) continue
    const found = growthOf(await planOf(plannedFresh, text), indexRows)
    if (found.length > 0) growing[name] = found
  }
  const isExcepted = ([name]: [string, string[]]) => freshExceptions[name] !== undefined
  expect(Object.fromEntries(Object.entries(growing).filter((entry) => !isExcepted(entry)))).toEqual({})
  expect(Object.keys(freshExceptions).filter((name) => !growing[name])).toEqual([])
  const freshPlan = (name: string) => planOf(plannedFresh, statements.get(name)!)
  // The first lookup must use the exact name instead of all names of the project. The second must use the hosts instead
  // of a full scan.
  expect(JSON.stringify(await freshPlan('vm_named'))).toContain('"vms_name"')
  expect(JSON.stringify(await freshPlan('vm_on_lost_hosts'))).toContain('"vms_by_host"')
  // Events wait in this table while no process stamps them.
  const tables = { ...grownTables, events_pending: 1 }
  expect(growthOf(await freshPlan('event_stamp'), indexRows, tables)).toEqual([])
})

test('no deletion scans a grown table to find references to the row', async () => {
  const deleted = [...statements.values()].flatMap((text) =>
    Array.from(text.matchAll(/DELETE FROM (\w+)/g), ([, table]) => table!),
  )
  const unserved = await query<{ table: string; column: string; target: string }>(
    store.url,
    `SELECT c.conrelid::regclass::text AS "table", a.attname AS column, c.confrelid::regclass::text AS target
     FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
     WHERE c.contype = 'f' AND c.confrelid::regclass::text = ANY ($1) AND NOT EXISTS (
       SELECT FROM pg_index i WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1]
         AND coalesce(pg_get_expr(i.indpred, i.indrelid), '') IN ('', '(' || a.attname || ' IS NOT NULL)'))`,
    [deleted],
  )
  // A location is deleted when a process starts without it.
  const growing = unserved.filter(({ table, target }) => grownTables[table] && target !== 'locations')
  expect(growing).toEqual([])
  expect(unserved).toContainEqual({ table: 'vms', column: 'location', target: 'locations' })
})

test.each([
  ['SELECT * FROM vms WHERE startup_script = $1', /^reads all of vms$/],
  ['SELECT * FROM operations WHERE actor = $1 ORDER BY id DESC LIMIT $2', /^walks operations_pkey$/],
  ['SELECT count(*) FROM operations WHERE project_id = ANY ($1)', /^reads \d{5} rows of operations$/],
  ['SELECT * FROM events WHERE created_at < $1 ORDER BY actor LIMIT 10', /^sorts \d{8} rows$/],
  [
    `SELECT * FROM events WHERE project_id = $1 AND position < $2 AND ($3::text IS NULL OR type = $3)
       AND ($4::text IS NULL OR actor = $4) ORDER BY position DESC LIMIT $5`,
    /^reads \d{4} rows of events for a page$/,
  ],
  [
    'SELECT * FROM vms WHERE project_id = $1 AND labels @> ALL ($2::jsonb[]) ORDER BY id DESC LIMIT $3',
    /^reads \d{3} rows of vms for a page$/,
  ],
  [
    'SELECT * FROM vms WHERE project_id = $1 AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3',
    /^skips over earlier pages$/,
  ],
])('a plan that grows is detected: %s', async (text, finding) => {
  expect(await growthOfText(text)).toContainEqual(expect.stringMatching(finding))
})

// If a few tenants own all rows, PostgreSQL assumes that a scan of all VMs finds a match early.
test('no statement reads more when a few tenants own all rows, except those listed', async () => {
  await planForFewTenants(store.url)
  const rowsNow = await rowsOfIndexes()
  const growing: Record<string, string[]> = {}
  for (const [name, text] of statements) {
    if (/^(test|dev)_/.test(name) || exceptions[name]) continue
    const found = growthOf(await planOf(database, text), rowsNow, tablesOfFewTenants)
    if (found.length > 0) growing[name] = found
  }
  const isExcepted = ([name]: [string, string[]]) => exceptionsForFewTenants[name] !== undefined
  expect(Object.fromEntries(Object.entries(growing).filter((entry) => !isExcepted(entry)))).toEqual({})
  expect(Object.keys(exceptionsForFewTenants).filter((name) => !growing[name])).toEqual([])
})
