import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { emptyDatabase } from '@slipway/testing/database.ts'
import { describeSchema } from '@slipway/testing/postgres/schema.ts'
import { root } from '@slipway/testing/root.ts'
import { expect, test } from 'vitest'
import { migrate } from '../../src/postgres/migrate.ts'

const { commit } = JSON.parse(readFileSync(join(root, 'packages/server/released.json'), 'utf8'))
const folder = 'packages/server/migrations/'
const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' })

/** Returns the migrations of the last release; undefined in a checkout without that part of the history. */
function releasedMigrations() {
  try {
    git('cat-file', '-e', `${commit}^{commit}`)
  } catch {
    return undefined
  }
  const paths = git('ls-tree', '--name-only', commit, folder).trim().split('\n')
  return paths.map((path) => ({
    path,
    version: Number(basename(path).slice(0, 4)),
    text: git('show', `${commit}:${path}`),
  }))
}

/** Inserts a row into a few tables that every release has. */
const fixture = `
  INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'Harbour Labs');
  INSERT INTO projects (id, organization_id, name) SELECT gen_random_uuid(), id, 'default' FROM organizations;
  INSERT INTO quotas (project_id, name, used) SELECT id, 'vms', 1 FROM projects;
  INSERT INTO locations (name, region, zone, engine, storage, position)
    VALUES ('us-east1-a', 'us-east1', 'a', 'simulated', 'shared', 1);
  INSERT INTO networks (id, project_id, name, cidr) SELECT gen_random_uuid(), id, 'default', '10.0.0.0/16' FROM projects;
  INSERT INTO subnets (id, project_id, network_id, name, cidr, location)
    SELECT gen_random_uuid(), project_id, id, 'default', '10.0.0.0/20', 'us-east1-a' FROM networks;
  INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, image, os_disk_id, interface_id,
                   network_id, subnet_id, mac_address, private_address)
    SELECT gen_random_uuid(), project_id, 'trainer', 'a40.1x', 'a40', 1, location, 'STATE_RUNNING', 'ubuntu24.04:latest',
           gen_random_uuid(), gen_random_uuid(), network_id, id, '02:00:00:00:00:01', '10.0.0.10' FROM subnets;
  INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
    SELECT project_id, location, 'vm', id, type, 1, tstzrange(slipway_now(), NULL) FROM vms;
  INSERT INTO events_pending (id, project_id, type, resource_type, resource_id, actor, request_id)
    SELECT gen_random_uuid(), project_id, 'vm.running', 'vm', id, 'system', '' FROM vms`

test('an upgraded database of the last release equals a new one and keeps its rows', async (context) => {
  const released = releasedMigrations()
  if (!released) return context.skip(`git does not find the released commit ${commit} in this checkout`)
  for (const { path, text } of released)
    expect(readFileSync(join(root, path), 'utf8'), `${path} was released and must not change`).toBe(text)

  const upgraded = await emptyDatabase()
  await migrate(upgraded.url, released)
  await upgraded.query(fixture)
  await migrate(upgraded.url)

  const fresh = await emptyDatabase()
  await migrate(fresh.url)
  expect(await describeSchema((text) => upgraded.query(text))).toBe(
    await describeSchema((text) => fresh.query(text)),
  )
  const { rows } = await upgraded.query(
    `SELECT v.name, q.used::int, s.usd_per_hour::int, e.type
     FROM vms v JOIN projects p ON p.id = v.project_id JOIN organization_quotas q USING (organization_id)
     JOIN project_spending s ON s.project_id = p.id JOIN events_written e ON e.resource_id = v.id::text`,
  )
  expect(rows).toEqual([{ name: 'trainer', used: 1, usd_per_hour: 0, type: 'vm.running' }])
})
