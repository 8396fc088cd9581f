import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { organizationQuotaNames } from '@slipway/contract'
import { setUpProject } from '../src/accounts/project-setup.ts'
import { newAccessKey } from '../src/domain/access-key.ts'
import { uuid } from '../src/domain/ids.ts'
import { hashSecret } from '../src/domain/secret.ts'
import { setOrganizationQuotas } from '../src/store/compute/organization-quotas.ts'
import type { Database } from '../src/store/database.ts'

export interface Tenant {
  projectId: string
  token: string
}

const amply = Object.fromEntries(organizationQuotaNames.map((name) => [name, 1_000_000]))

/** Projects with a write key each, and quotas that do not end. */
export async function addProjects(
  database: Database,
  demo: { organization_id: string },
  count: number,
): Promise<Tenant[]> {
  await database.transaction((tx) => setOrganizationQuotas(tx, demo.organization_id, amply))
  const tenants: Tenant[] = []
  for (let i = 0; i < count; i++) {
    const { id } = await database.transaction((tx) =>
      setUpProject(tx, { organizationId: demo.organization_id, name: `bench-${i}` }),
    )
    const { text, prefix } = newAccessKey(randomBytes)
    await database.query({
      text: `INSERT INTO access_keys (id, kind, project_id, name, role, prefix, secret_hash) VALUES ($1, 'project', $2, 'bench', 'write', $3, $4)`,
      values: [uuid(), id, prefix, hashSecret(text)],
    })
    tenants.push({ projectId: id, token: text })
  }
  return tenants
}

/** Shut off VMs, until the table has so many rows. */
export async function addVmRows(database: Database, projectId: string, total: number): Promise<void> {
  await database.query({
    text: `
      WITH subnet AS (SELECT s.*, n.id AS net FROM subnets s JOIN networks n ON n.id = s.network_id WHERE s.project_id = $1 LIMIT 1)
      INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, image, ssh_public_key, os_disk_id,
                       interface_id, network_id, subnet_id, mac_address, private_address)
      SELECT gen_random_uuid(), $1, 'row-' || i, 'a100.1x', 'a100', 1, subnet.location, 'STATE_SHUTOFF', 'debian12:latest', 'ssh-ed25519 x',
             gen_random_uuid(), gen_random_uuid(), subnet.net, subnet.id, 'bench-' || i, '10.0.0.0'::inet + i
      FROM subnet, generate_series((SELECT count(*) FROM vms WHERE name LIKE 'row-%') + 1, $2::bigint) i`,
    values: [projectId, total],
  })
}

/** What a VM has left behind by the time that it is one of many. */
const perVm = { operations: 5, events: 20, intervals: 2 }

/** The history of so many VMs, until the tables have it: finished operations, stamped events and closed meters. */
export async function addHistory(database: Database, projectId: string, vms: number) {
  const total = (kind: keyof typeof perVm) => vms * perVm[kind]
  await database.transaction(async (tx) => {
    // Without triggers and time limits: the rows agree with each other, and there are many.
    await tx.query({ text: 'SET LOCAL session_replication_role = replica' })
    await tx.query({ text: 'SET LOCAL statement_timeout = 0' })
    const missing = (table: string) =>
      `generate_series((SELECT count(*) FROM ${table} WHERE project_id = $1) + 1, $2::bigint) i`
    await tx.query({
      text: `
        INSERT INTO operations (id, project_id, kind, name, resource_type, resource_id, generation, request, state, actor,
                                request_id, started_at, completed_at)
        SELECT gen_random_uuid(), $1, 'vm-create', 'CREATE', 'vm', gen_random_uuid(), 1, '{}', 'SUCCEEDED', 'bench', '', at, at
        FROM ${missing('operations')}, LATERAL (SELECT slipway_now() - i * interval '1 second' AS at) t`,
      values: [projectId, total('operations')],
    })
    await tx.query({
      text: `
        WITH added AS MATERIALIZED (SELECT i, row_number() OVER () AS n FROM ${missing('events')}),
             counter AS (UPDATE event_counter SET last_position = last_position + (SELECT count(*) FROM added)
                         RETURNING last_position - (SELECT count(*) FROM added) AS base)
        INSERT INTO events (id, position, project_id, type, resource_type, resource_id, actor, request_id)
        SELECT gen_random_uuid(), base + n, $1, 'vm.running', 'vm', gen_random_uuid(), 'bench', '' FROM added, counter`,
      values: [projectId, total('events')],
    })
    await tx.query({
      text: `
        INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
        SELECT $1, 'us-east1-a', 'vm', gen_random_uuid(), 'a100.1x', 1,
               tstzrange(slipway_now() - interval '10 minutes', slipway_now() - interval '5 minutes')
        FROM ${missing('usage_intervals')}`,
      values: [projectId, total('intervals')],
    })
  })
  return { operations: total('operations'), events: total('events'), intervals: total('intervals') }
}

/** PostgreSQL's counters lag behind by up to a second. */
export const noise = (ms: number) => delay(ms)
