import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { migrate } from '../../src/store/migrate.ts'
import { storeBefore } from '../support/old-store.ts'

/** What a store of an earlier version has in it is still right after the step that changes its meaning. */

const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
const [organization, project, user] = [id(1), id(2), id(3)]

async function storeWithTenant(version: number) {
  const store = await storeBefore(version)
  await store.query(`INSERT INTO organizations (id, name) VALUES ('${organization}', 'First')`)
  await store.query(
    `INSERT INTO projects (id, organization_id, name) VALUES ('${project}', '${organization}', 'default')`,
  )
  await store.query(
    `INSERT INTO users (id, email, password_hash) VALUES ('${user}', 'ada@example.com', 'hash')`,
  )
  return store
}

test('of deliveries that wait, the first of each line alone has a time, and its webhook stands in line', async () => {
  const { url, query } = await storeWithTenant(15)
  const [waiting, paused, idle] = [id(10), id(11), id(12)]
  await query(
    `INSERT INTO webhooks (id, project_id, url, event_types, since_position, state) VALUES
       ('${waiting}', '${project}', 'https://example.com/1', '{}', 0, 'active'),
       ('${paused}', '${project}', 'https://example.com/2', '{}', 0, 'paused'),
       ('${idle}', '${project}', 'https://example.com/3', '{}', 0, 'active')`,
  )
  await query(`INSERT INTO webhook_secrets (webhook_id, secret) VALUES ('${waiting}', 'whsec_plain')`)
  for (const n of [1, 2, 3, 4, 5, 6])
    await query(
      `INSERT INTO events (id, position, project_id, type, resource_type, resource_id, actor, request_id)
       VALUES ('${id(20 + n)}', ${n}, '${project}', 'vm.running', 'vm', 'x', '', '')`,
    )
  // Of the resource a two wait, the first under a lease; of b one; one was asked for; one is over; one is paused.
  await query(
    `INSERT INTO webhook_deliveries
       (id, webhook_id, event_id, event_type, resource_id, is_direct, state, next_attempt_at, lease_until, completed_at) VALUES
       ('${id(31)}', '${waiting}', '${id(21)}', 'vm.running', 'a', false, 'pending', '2026-01-01T00:00Z', '2026-01-01T00:10Z', NULL),
       ('${id(32)}', '${waiting}', '${id(22)}', 'vm.running', 'a', false, 'pending', '2026-01-01T00:01Z', NULL, NULL),
       ('${id(33)}', '${waiting}', '${id(23)}', 'vm.running', 'b', false, 'pending', '2026-01-01T00:05Z', NULL, NULL),
       ('${id(34)}', '${waiting}', '${id(21)}', 'vm.running', 'a', true, 'pending', '2026-01-01T00:06Z', NULL, NULL),
       ('${id(35)}', '${waiting}', '${id(24)}', 'vm.running', 'b', false, 'delivered', NULL, NULL, '2026-01-01T00:00Z'),
       ('${id(36)}', '${paused}', '${id(25)}', 'vm.running', 'a', false, 'pending', NULL, NULL, NULL)`,
  )

  await migrate(url)
  const deliveries = await query('SELECT id, next_attempt_at FROM webhook_deliveries ORDER BY id')
  expect(deliveries.rows.map((row) => [row.id, row.next_attempt_at?.toISOString() ?? null])).toEqual([
    [id(31), '2026-01-01T00:10:00.000Z'],
    [id(32), null],
    [id(33), '2026-01-01T00:05:00.000Z'],
    [id(34), '2026-01-01T00:06:00.000Z'],
    [id(35), null],
    [id(36), null],
  ])
  const webhooks = await query('SELECT id, due_at FROM webhooks ORDER BY id')
  expect(webhooks.rows.map((row) => [row.id, row.due_at?.toISOString() ?? null])).toEqual([
    [waiting, '2026-01-01T00:05:00.000Z'],
    [paused, null],
    [idle, null],
  ])
  const secrets = await query('SELECT plain, sealed FROM webhook_secrets')
  expect(secrets.rows).toEqual([{ plain: 'whsec_plain', sealed: null }])
})

test('addresses of sessions are known from the start, but those of IPv6, which count by their /64', async () => {
  const { url, query } = await storeWithTenant(17)
  await query(
    `INSERT INTO token_families (id, user_id, client_address, last_used_at) VALUES
       ('${id(40)}', '${user}', '192.0.2.1', '2026-01-01T00:00Z'),
       ('${id(41)}', '${user}', '192.0.2.1', '2026-01-02T00:00Z'),
       ('${id(42)}', '${user}', '192.0.2.2', '2026-01-01T00:00Z'),
       ('${id(43)}', '${user}', '2001:db8::1', '2026-01-01T00:00Z'),
       ('${id(44)}', '${user}', '', '2026-01-01T00:00Z')`,
  )
  await query(
    `INSERT INTO password_failures (email, address, failed_at) VALUES
       ('ada@example.com', '192.0.2.9', now()), ('ada@example.com', '192.0.2.9', now())`,
  )

  await migrate(url)
  const known = await query('SELECT user_id, address, signed_in_at FROM known_addresses ORDER BY address')
  expect(known.rows).toEqual([
    { user_id: user, address: '192.0.2.1', signed_in_at: new Date('2026-01-02T00:00:00Z') },
    { user_id: user, address: '192.0.2.2', signed_in_at: new Date('2026-01-01T00:00:00Z') },
  ])
  const failures = await query('SELECT DISTINCT id FROM password_failures')
  expect(failures.rows).toHaveLength(2)
})

/** A network and subnet in the location r-a. */
async function withNetwork({ query }: Awaited<ReturnType<typeof storeBefore>>) {
  await query(
    `INSERT INTO locations (name, region, zone, engine, storage, position) VALUES ('r-a', 'r', 'a', 'simulated', 'shared', 1)`,
  )
  await query(
    `INSERT INTO networks (id, project_id, name, cidr) VALUES ('${id(50)}', '${project}', 'n', '10.0.0.0/16')`,
  )
  await query(
    `INSERT INTO subnets (id, project_id, network_id, name, cidr, location)
     VALUES ('${id(51)}', '${project}', '${id(50)}', 's', '10.0.0.0/20', 'r-a')`,
  )
}

test('what was there before labels and several keys has none, its key, its script by hash, and usage by name', async () => {
  const store = await storeWithTenant(28)
  const { url, query } = store
  await withNetwork(store)
  const scripts = ['', 'echo ready']
  for (const [n, script] of scripts.entries())
    await query(
      `INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, image, ssh_public_key, startup_script,
                        os_disk_id, interface_id, network_id, subnet_id, mac_address, private_address)
       VALUES ('${id(60 + n)}', '${project}', 'vm-${n}', 'a40.1x', 'a40', 1, 'r-a', 'STATE_RUNNING', 'i', 'key ${n}', '${script}',
               gen_random_uuid(), gen_random_uuid(), '${id(50)}', '${id(51)}', 'mac-${n}', '10.0.0.1${n}')`,
    )
  await query(
    `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period) VALUES
       ('${project}', 'r-a', 'vm', '${id(60)}', 'a40.1x', 1, '[2026-01-01T00:00Z,2026-01-02T00:00Z)'),
       ('${project}', 'r-a', 'vm', '${id(60)}', 'a40.1x', 1, '[2026-01-02T00:00Z,)')`,
  )
  await query(`INSERT INTO usage_days_closed (day) VALUES ('2026-01-01')`)
  await query(
    `INSERT INTO images (id, name, tags, source) VALUES
       ('${id(70)}', 'ubuntu24.04:latest', '{}', '{}'), ('${id(71)}', 'mine:latest', '{imported}', '{"file":"x"}'),
       ('${id(72)}', 'mini:latest', '{}', '{"folder":"y"}')`,
  )

  await migrate(url)
  const vms = await query(
    'SELECT labels, description, is_protected, ssh_public_keys, ssh_host_key, os_disk_gib, startup_script_sha256 FROM vms ORDER BY id',
  )
  const same = { labels: {}, description: '', is_protected: false, ssh_host_key: '', os_disk_gib: 128 }
  const sha256 = createHash('sha256').update('echo ready').digest('hex')
  expect(vms.rows).toEqual([
    { ...same, ssh_public_keys: ['key 0'], startup_script_sha256: '' },
    { ...same, ssh_public_keys: ['key 1'], startup_script_sha256: sha256 },
  ])
  const intervals = await query('SELECT resource_name, labels FROM usage_intervals ORDER BY period')
  expect(intervals.rows).toEqual([
    { resource_name: '', labels: {} },
    { resource_name: 'vm-0', labels: {} },
  ])
  const days = await query('SELECT has_resources FROM usage_days_closed')
  expect(days.rows).toEqual([{ has_resources: false }])
  const images = await query('SELECT name, tags FROM images ORDER BY name')
  expect(images.rows).toEqual([
    { name: 'mine:latest', tags: ['imported', 'cloud-init'] },
    { name: 'mini:latest', tags: [] },
    { name: 'ubuntu24.04:latest', tags: ['cloud-init'] },
  ])
})

test('a VM that was there already has been in its state since it was last changed, and runs since its meter opened', async () => {
  const store = await storeWithTenant(32)
  const { url, query } = store
  await withNetwork(store)
  const states = ['STATE_RUNNING', 'STATE_SHUTOFF', 'STATE_UNREACHABLE']
  for (const [n, state] of states.entries())
    await query(
      `INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, image, ssh_public_keys, os_disk_id,
                        interface_id, network_id, subnet_id, mac_address, private_address, created_at, updated_at)
       VALUES ('${id(60 + n)}', '${project}', 'vm-${n}', 'a40.1x', 'a40', 1, 'r-a', '${state}', 'i', '{k}', gen_random_uuid(),
               gen_random_uuid(), '${id(50)}', '${id(51)}', 'mac-${n}', '10.0.0.1${n}', '2026-01-01T00:00Z', '2026-01-03T00:00Z')`,
    )
  await query(
    `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
     VALUES ('${project}', 'r-a', 'vm', '${id(60)}', 'a40.1x', 1, '[2026-01-02T00:00Z,)')`,
  )

  await migrate(url)
  const { rows } = await query('SELECT state_since, started_at FROM vms ORDER BY id')
  const changed = new Date('2026-01-03T00:00:00Z')
  expect(rows).toEqual([
    { state_since: changed, started_at: new Date('2026-01-02T00:00:00Z') },
    { state_since: changed, started_at: null },
    { state_since: changed, started_at: new Date('2026-01-01T00:00:00Z') },
  ])
})

test('meters that were there already know what the earlier ones of their resource cost', async () => {
  const { url, query } = await storeWithTenant(35)
  await query(`UPDATE clock SET frozen_at = '2026-02-01T00:00:00Z'`)
  await query(`INSERT INTO prices (product_name, valid_from, unit, usd) VALUES
    ('a40.1x', '2026-01-01T00:00Z', 'vm_hour', 1), ('a40.1x', '2026-01-02T12:00Z', 'vm_hour', 2)`)
  const periods = [
    '[2026-01-02T00:00Z,2026-01-03T00:00Z)',
    '[2026-01-04T00:00Z,2026-01-04T01:00Z)',
    '[2026-01-05T00:00Z,)',
  ]
  for (const [n, period] of [...periods, ...periods.slice(2)].entries())
    await query(
      `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
       VALUES ('${project}', 'r-a', 'vm', '${id(n < 3 ? 60 : 61)}', 'a40.1x', 1, '${period}')`,
    )

  await migrate(url)
  const { rows } = await query(
    'SELECT earlier_usd_ms / 3600000 AS usd FROM usage_intervals ORDER BY resource_id, lower(period)',
  )
  expect(rows.map(({ usd }) => Number(usd))).toEqual([0, 36, 38, 0])
})
