import { organizationQuotaNames } from '@slipway/contract'
import { addOrganization } from '@slipway/testing/people.ts'
import { createAccessKey } from '../src/accounts/credentials.ts'
import { setUpProject } from '../src/accounts/project-setup.ts'
import type { Database, Tx } from '../src/postgres/database.ts'
import { setOrganizationQuotas } from '../src/store/compute/organization-quotas.ts'
import { type Made, runLoad } from './load.ts'
import { locations, type RunningService } from './running-service.ts'

export interface Tenant {
  projectId: string
  token: string
}

const amply = Object.fromEntries(organizationQuotaNames.map((name) => [name, 1_000_000]))

/** Organizations that pay, with projects that have a write key each, and quotas that do not end. */
export async function addTenants(
  database: Database,
  name: string,
  organizations: number,
  projectsEach: number,
): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  for (let o = 0; o < organizations; o++) {
    const organizationId = await addOrganization(database, `${name} ${o}`)
    await database.transaction(async (tx) => {
      await setOrganizationQuotas(tx, organizationId, amply)
      for (let p = 0; p < projectsEach; p++) {
        const { id: projectId } = await setUpProject(tx, { organizationId, name: `${name}-${p}` })
        tenants.push({ projectId, token: await addWriteKey(tx, projectId) })
      }
    })
  }
  return tenants
}

/** Returns the key. */
export async function addWriteKey(tx: Tx, projectId: string): Promise<string> {
  const scope = { projectId, organizationId: null }
  return (await createAccessKey(tx, { scope, name: 'bench', role: 'write', createdBy: null }))!.secret
}

/** A project with more VMs than a page has, which also warms the service up. */
export async function addVms(service: RunningService): Promise<Made[]> {
  const tenants = await addTenants(service.database, 'reader', 1, 1)
  return createVms(service, tenants, 120)
}

export async function createVms({ main }: RunningService, tenants: Tenant[], count: number): Promise<Made[]> {
  const load = { kind: 'create', url: main.url, tenants, location: locations[0], clients: 8, count } as const
  return (await runLoad(load)).made
}

/** Shuts a VM off. */
export async function stopVm({ main }: RunningService, { projectId, token, vmId }: Made): Promise<void> {
  const base = `${main.url}/v0.1/projects/${projectId}/vms`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ action: 'STOP' })
  const begun = await fetch(`${base}/${vmId}`, { method: 'PATCH', headers, body })
  const { operation } = (await begun.json()) as { operation: { operation_id: string } }
  const ended = await fetch(`${base}/operations/${operation.operation_id}?wait=30`, { headers })
  const { state } = (await ended.json()) as { state: string }
  if (state !== 'SUCCEEDED') throw new Error(`a VM that was to stop: ${state}`)
}
