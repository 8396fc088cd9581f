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

/** PostgreSQL's counters lag behind by up to a second. */
export const noise = (ms: number) => delay(ms)
