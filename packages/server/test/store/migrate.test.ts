import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { Database } from '../../src/store/database.ts'
import { emit, stampEvents } from '../../src/store/events/events.ts'
import { migrate, migrations, NewerSchemaError } from '../../src/store/migrate.ts'
import { emptyDatabase, storeBefore } from '../support/old-store.ts'

const ours = `n.nspname = 'public' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = o.oid AND d.deptype = 'e')`

/** Everything that makes two schemas the same, as text. */
const catalogs: Record<string, string> = {
  extensions: 'SELECT extname AS name FROM pg_extension',
  relations: `SELECT concat_ws(' ', o.relname, o.relkind) AS name FROM pg_class o JOIN pg_namespace n ON n.oid = o.relnamespace WHERE ${ours}`,
  columns: `SELECT concat_ws(' ', o.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                             a.attidentity, a.attgenerated, a.attcollation, pg_get_expr(f.adbin, f.adrelid)) AS name
            FROM pg_attribute a JOIN pg_class o ON o.oid = a.attrelid JOIN pg_namespace n ON n.oid = o.relnamespace
            LEFT JOIN pg_attrdef f ON f.adrelid = o.oid AND f.adnum = a.attnum
            WHERE a.attnum > 0 AND NOT a.attisdropped AND o.relkind IN ('r', 'p', 'v', 'm') AND ${ours}`,
  constraints: `SELECT concat_ws(' ', o.conrelid::regclass, o.conname, pg_get_constraintdef(o.oid)) AS name
                FROM pg_constraint o JOIN pg_namespace n ON n.oid = o.connamespace WHERE ${ours}`,
  indexes: `SELECT indexdef AS name FROM pg_indexes WHERE schemaname = 'public'`,
  triggers: `SELECT pg_get_triggerdef(oid) AS name FROM pg_trigger WHERE NOT tgisinternal`,
  functions: `SELECT pg_get_functiondef(o.oid) AS name FROM pg_proc o JOIN pg_namespace n ON n.oid = o.pronamespace
              WHERE o.prokind IN ('f', 'p') AND ${ours}`,
  types: `SELECT concat_ws(' ', o.typname, o.typtype, (SELECT string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder)
                                                       FROM pg_enum e WHERE e.enumtypid = o.oid)) AS name
          FROM pg_type o JOIN pg_namespace n ON n.oid = o.typnamespace WHERE o.typtype IN ('e', 'd', 'r') AND ${ours}`,
  views: `SELECT viewname || ' ' || definition AS name FROM pg_views WHERE schemaname = 'public'`,
  storage: `SELECT o.relname || ' ' || array_to_string(o.reloptions, ',') AS name
            FROM pg_class o JOIN pg_namespace n ON n.oid = o.relnamespace WHERE o.reloptions IS NOT NULL AND ${ours}`,
}

async function describeSchema(query: pg.Client['query']): Promise<Record<string, string[]>> {
  const described: Record<string, string[]> = {}
  for (const [what, text] of Object.entries(catalogs)) {
    const { rows } = await query(text)
    const names = rows.map(({ name }) => String(name)).filter((name) => !name.includes('schema_versions'))
    described[what] = names.toSorted()
  }
  const { rows: tables } = await query(
    `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`,
  )
  described.rows = []
  for (const { tablename } of tables) {
    if (tablename === 'schema_versions') continue
    const { rows } = await query(`SELECT to_jsonb(t)::text AS row FROM ${tablename} t ORDER BY 1`)
    described.rows.push(...rows.map(({ row }) => `${tablename} ${row}`))
  }
  return described
}

const versionsOf = async (query: pg.Client['query']) =>
  (await query('SELECT version, applied_at FROM schema_versions ORDER BY version')).rows

test('migrating a second time does nothing', async () => {
  const { url, query } = await emptyDatabase()
  await migrate(url)
  const [schema, versions] = [await describeSchema(query), await versionsOf(query)]
  for (const what of ['columns', 'constraints', 'indexes', 'triggers', 'functions', 'rows'])
    expect(schema[what]!.length, what).toBeGreaterThan(0)
  expect(versions.map(({ version }) => version)).toEqual(migrations().map(({ version }) => version))
  await migrate(url)
  expect(await versionsOf(query)).toEqual(versions)
  expect(await describeSchema(query)).toEqual(schema)
})

test('migrating by five at once happens once', async () => {
  const { url, query } = await emptyDatabase()
  await Promise.all(Array.from({ length: 5 }, () => migrate(url)))
  expect((await versionsOf(query)).map(({ version }) => version)).toEqual(
    migrations().map(({ version }) => version),
  )
  const alone = await emptyDatabase()
  await migrate(alone.url)
  expect(await describeSchema(query)).toEqual(await describeSchema(alone.query))
})

test('migrating leaves nothing of a step that fails, and can be tried again', async () => {
  const { url, query } = await emptyDatabase()
  await query('CREATE TABLE operations (id integer)')
  await expect(migrate(url)).rejects.toThrow(/"operations" already exists/)
  expect(await versionsOf(query)).toEqual([])
  await query('DROP TABLE operations')
  await migrate(url)
  expect(await versionsOf(query)).toHaveLength(migrations().length)
})

test('migrating while a rule is being renamed keeps both of its names', async () => {
  const { url, query } = await emptyDatabase()
  await query(
    'CREATE TABLE schema_versions (version integer PRIMARY KEY, min_compatible_version integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
  )
  for (const { version, text } of migrations().filter((migration) => migration.version < 5)) {
    await query(text)
    await query('INSERT INTO schema_versions (version, min_compatible_version) VALUES ($1, 1)', [version])
  }
  await query(`
    INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'o');
    INSERT INTO projects (id, organization_id, name) SELECT gen_random_uuid(), id, 'p' FROM organizations;
    INSERT INTO networks (id, project_id, name, cidr) SELECT gen_random_uuid(), id, 'n', '10.0.0.0/16' FROM projects;
    INSERT INTO firewall_rules (id, project_id, network_id, name, direction, action, state, sources, source_ports,
                                destinations, destination_ports, protocols)
      SELECT gen_random_uuid(), project_id, id, r.name, 'ingress', 'allow', r.state, '[]', '{}', '[]', '{}', '{tcp}'
      FROM networks, (VALUES ('new', 'updating'), ('other', 'active')) AS r (name, state);
    INSERT INTO operations (id, project_id, kind, name, resource_type, resource_id, generation, request, scratch, actor, request_id)
      SELECT gen_random_uuid(), project_id, 'firewall-rule-update', 'UPDATE', 'firewall_rule', id, 1, '{}',
             '{"before": {"name": "old"}}', 'a', 'r' FROM firewall_rules WHERE name = 'new'`)
  await migrate(url)
  const names = async () =>
    (await query('SELECT name FROM firewall_rule_names ORDER BY name')).rows.map(({ name }) => name)
  expect(await names()).toEqual(['new', 'old', 'other'])
  await query(`UPDATE firewall_rules SET state = 'active' WHERE name = 'new'`)
  expect(await names()).toEqual(['new', 'other'])
})

test('migrating gives no two steps one number', () => {
  const versions = migrations().map(({ version }) => version)
  expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b))
})

/** Brings a database to what a version had that knew no later step. */
async function migrateTo(query: pg.Client['query'], last: number): Promise<void> {
  await query(
    'CREATE TABLE schema_versions (version integer PRIMARY KEY, min_compatible_version integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
  )
  for (const { version, text } of migrations().filter((migration) => migration.version <= last)) {
    await query(text)
    await query('INSERT INTO schema_versions (version, min_compatible_version) VALUES ($1, 1)', [version])
  }
}

test('migrating a store that is in use finds what each project has spent and what its organization uses', async () => {
  const { url, query } = await emptyDatabase()
  await migrateTo(query, 4)
  const [organization, first, second] = [uuid(), uuid(), uuid()]
  await query(`UPDATE clock SET frozen_at = '2027-03-02T00:00:00Z'`)
  await query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [organization, 'Harbour Labs'])
  for (const project of [first, second]) {
    await query('INSERT INTO projects (id, organization_id, name) VALUES ($1, $2, $3)', [
      project,
      organization,
      project,
    ])
    await query(`INSERT INTO quotas (project_id, name, max, used) VALUES ($1, 'vms', 8, 3)`, [project])
  }
  await query(`INSERT INTO prices (product_name, valid_from, unit, usd) VALUES
    ('a100.1x', '2027-01-01Z', 'vm_hour', 1), ('a100.1x', '2027-03-01T12:00Z', 'vm_hour', 2)`)
  const meter = (project: string, period: string) =>
    query(
      `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
       VALUES ($1, 'us-east1-a', 'vm', gen_random_uuid(), 'a100.1x', 1, $2)`,
      [project, period],
    )
  await meter(first, '[2027-02-20 00:00Z,)')
  await meter(first, '[2027-02-20 00:00Z,2027-03-01 01:00Z)')
  await meter(first, '[2027-02-20 00:00Z,2027-02-21 00:00Z)')

  await migrate(url)
  const spending = await query(
    'SELECT project_id, spent_usd_ms / 3600000 AS usd, usd_per_hour AS rate FROM project_spending',
  )
  // 12 hours at 1, 12 at 2, and the first hour of another; what was before March does not count.
  expect(spending.rows.map(({ project_id, usd, rate }) => [project_id, Number(usd), Number(rate)])).toEqual([
    [first, 37, 2],
  ])
  const used = () => query('SELECT name, max, used::integer FROM organization_quotas')
  expect((await used()).rows).toEqual([{ name: 'vms', max: null, used: 6 }])
  // Servers of the version before know nothing of it, and are counted all the same.
  await query(`UPDATE quotas SET used = used + 2 WHERE project_id = $1`, [second])
  await query(`INSERT INTO quotas (project_id, name, max) VALUES ($1, 'firewall_rules', 200)`, [second])
  await query(`UPDATE quotas SET used = 4 WHERE name = 'firewall_rules'`)
  expect((await used()).rows).toEqual([
    { name: 'vms', max: null, used: 8 },
    { name: 'firewall_rules', max: null, used: 4 },
  ])
})

test('a schema of a newer version that this version cannot use is refused in one line, untouched', async () => {
  const { url, query } = await emptyDatabase()
  await migrate(url)
  await query('INSERT INTO schema_versions (version, min_compatible_version) VALUES (999, 998)')
  const schema = await describeSchema(query)
  const refusal = await migrate(url).catch((error) => error)
  expect(refusal).toBeInstanceOf(NewerSchemaError)
  expect(refusal.message).toMatch(/^this data was written by a newer version of Slipway \(schema 999, .*$/)
  expect(await describeSchema(query)).toEqual(schema)
})

test('a schema of a newer version that older ones may share is taken as it is', async () => {
  const { url, query } = await emptyDatabase()
  await migrate(url)
  await query('INSERT INTO schema_versions (version, min_compatible_version) VALUES (999, 1)')
  await migrate(url)
  expect((await versionsOf(query)).at(-1)!.version).toBe(999)
})

test('what was granted before links had to be redeemed stays valid, and open links end', async () => {
  const { url, query } = await storeBefore(12)
  const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
  await query(`INSERT INTO organizations (id, name) VALUES ('${id(1)}', 'First'), ('${id(2)}', 'Second')`)
  await query(`INSERT INTO projects (id, organization_id, name) VALUES ('${id(3)}', '${id(1)}', 'default')`)
  await query(
    `INSERT INTO users (id, email, password_hash, is_operator) VALUES
       ('${id(10)}', 'ada@example.com', 'hash', false), ('${id(11)}', 'bob@example.com', NULL, false),
       ('${id(12)}', 'eve@example.com', NULL, true), ('${id(13)}', 'root@example.com', 'hash', true),
       ('${id(14)}', 'late@example.com', 'hash', true)`,
  )
  await query(
    `INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES
       ('${id(1)}', '${id(10)}', 'owner', now()), ('${id(1)}', '${id(11)}', 'viewer', now() - interval '1 hour'),
       ('${id(2)}', '${id(11)}', 'owner', now()), ('${id(2)}', '${id(12)}', 'admin', now())`,
  )
  await query(
    `INSERT INTO one_time_codes (code_hash, purpose, user_id, expires_at) VALUES
       ('bob', 'invite', '${id(11)}', now() + interval '1 day'), ('eve', 'invite', '${id(12)}', now() + interval '1 day')`,
  )
  await query(
    `INSERT INTO access_keys (id, kind, project_id, name, role, prefix, secret_hash) VALUES
       ('${id(20)}', 'project', '${id(3)}', 'ci', 'read', 'slp_a', 'a'),
       ('${id(21)}', 'project', '${id(3)}', 'old', 'write', 'slp_b', 'b'),
       ('${id(22)}', 'operator', NULL, 'ops', 'write', 'slp_c', 'c')`,
  )
  const event = (type: string, resource: number, actor: string, organization: string | null) =>
    query(
      `INSERT INTO events (id, type, resource_type, resource_id, actor, request_id, organization_id)
       VALUES (gen_random_uuid(), $1, 'access_key', $2, $3, '', $4)`,
      [type, id(resource), actor, organization],
    )
  await event('access_key.created', 20, `user:${id(10)}`, null)
  await event('user.setup', 13, `user:${id(13)}`, null)

  await migrate(url)
  const rows = async (text: string) => (await query(text)).rows
  expect(await rows('SELECT email, role FROM memberships JOIN users ON id = user_id')).toEqual([
    { email: 'ada@example.com', role: 'owner' },
  ])
  expect(await rows('SELECT FROM invitations'), 'a link whose maker is not on record ends').toEqual([])
  expect(await rows('SELECT name, created_by FROM access_keys ORDER BY id')).toEqual([
    { name: 'ci', created_by: id(10) },
    { name: 'old', created_by: null },
    { name: 'ops', created_by: null },
  ])
  expect(
    (await rows('SELECT description FROM grants_to_review ORDER BY id')).map((row) => row.description),
  ).toEqual([
    'late@example.com is an operator',
    `ada@example.com is owner of the organization First (${id(1)})`,
    'the operator key ops (slp_c)',
  ])
})

test('a creation or start that is under way goes on at the step that does the same', async () => {
  const { url, query } = await storeBefore(26)
  await query(`
    INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'o');
    INSERT INTO projects (id, organization_id, name) SELECT gen_random_uuid(), id, 'p' FROM organizations`)
  const steps = [0, 1, 2, 3, 4]
  for (const kind of ['vm-create', 'vm-start', 'vm-reset'])
    for (const step of steps)
      await query(
        `INSERT INTO operations (id, project_id, kind, name, resource_type, resource_id, generation, request, step, actor,
                                 request_id)
         SELECT $1, id, $2, 'UPDATE', 'vm', gen_random_uuid(), 1, '{}', $3, 'a', 'r' FROM projects`,
        [uuid(), kind, step],
      )
  await migrate(url)
  const { rows } = await query('SELECT kind, array_agg(step ORDER BY id) AS steps FROM operations GROUP BY 1')
  expect(Object.fromEntries(rows.map(({ kind, steps }) => [kind, steps]))).toEqual({
    'vm-create': [0, 1, 1, 1, 2],
    'vm-start': [0, 1, 1, 1, 2],
    'vm-reset': steps,
  })
})

test('migrating carries unfinished operations into the queue as they stand, and leaves finished ones out', async () => {
  const { url, query } = await storeBefore(20)
  const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
  await query(`INSERT INTO organizations (id, name) VALUES ('${id(1)}', 'First')`)
  await query(`INSERT INTO projects (id, organization_id, name) VALUES ('${id(2)}', '${id(1)}', 'default')`)
  const insert = (n: number, name: string, rest: string) =>
    query(
      `INSERT INTO operations (id, project_id, kind, name, resource_type, resource_id, location, generation, request, actor,
                               request_id, run_at, lease_token, lease_until, is_cancelled, state, completed_at)
       VALUES ('${id(n)}', '${id(2)}', 'vm-x', '${name}', 'vm', '${id(9)}', 'here', 1, '{}', 'a', 'r', '2027-01-01Z', ${rest})`,
    )
  await insert(3, 'CREATE', `'${id(7)}', '2027-01-01Z', true, 'IN_PROGRESS', NULL`)
  await insert(4, 'DELETE', `NULL, NULL, false, 'IN_PROGRESS', NULL`)
  await insert(5, 'STOP', `NULL, NULL, false, 'SUCCEEDED', now()`)

  await migrate(url)
  const { rows } = await query('SELECT * FROM operation_queue ORDER BY operation_id')
  const common = { project_id: id(2), resource_id: id(9), location: 'here', run_at: new Date('2027-01-01') }
  expect(rows).toEqual([
    { ...common, operation_id: id(3), is_deletion: false, lease_token: id(7), is_cancelled: true },
    { ...common, operation_id: id(4), is_deletion: true, lease_token: null, is_cancelled: false },
  ])
})

test('migrating keeps every event once, positions and deliveries too, and goes on in their order', async () => {
  const { url, query } = await storeBefore(21)
  const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
  await query(`INSERT INTO organizations (id, name) VALUES ('${id(1)}', 'First')`)
  await query(`INSERT INTO projects (id, organization_id, name) VALUES ('${id(2)}', '${id(1)}', 'default')`)
  for (const n of [1, 2, 3])
    await query(
      `INSERT INTO events (id, position, project_id, type, resource_type, resource_id, actor, request_id, client_address, data)
       VALUES ('${id(10 + n)}', ${n === 1 ? 1 : null}, '${id(2)}', 'vm.running', 'vm', 'x', 'a', 'r', '192.0.2.1', '{"n": ${n}}')`,
    )
  await query('UPDATE event_counter SET last_position = 1')
  await query('UPDATE webhook_fan_out SET position = 1')
  await query(
    `INSERT INTO webhooks (id, project_id, url, event_types, since_position)
     VALUES ('${id(3)}', '${id(2)}', 'https://example.com', '{}', 0)`,
  )
  await query(
    `INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id, next_attempt_at) VALUES
       ('${id(4)}', '${id(3)}', '${id(11)}', 'vm.running', 'x', now()),
       ('${id(5)}', '${id(3)}', '${id(12)}', 'vm.running', 'x', NULL)`,
  )

  await migrate(url)
  const database = new Database({ url, poolSize: 2 })
  onTestFinished(() => database.close())
  await database.transaction((tx) => emit(tx, { type: 'vm.shutoff', resourceType: 'vm', resourceId: 'x' }))
  await stampEvents(database, true)
  const { rows } = await query('SELECT position::int, id, data, client_address FROM events ORDER BY position')
  expect(rows).toEqual([
    ...[1, 2, 3].map((n) => ({ position: n, id: id(10 + n), data: { n }, client_address: '192.0.2.1' })),
    { position: 4, id: expect.any(String), data: {}, client_address: '' },
  ])
  const deliveries = await query('SELECT event_id FROM webhook_deliveries ORDER BY seq')
  expect(deliveries.rows).toEqual([{ event_id: id(11) }, { event_id: id(12) }])
  expect((await query('SELECT position::int FROM webhook_fan_out')).rows).toEqual([{ position: 1 }])
})
