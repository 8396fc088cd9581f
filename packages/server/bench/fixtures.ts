import { organizationQuotaNames } from '@slipway/contract'
import { growRows } from '@slipway/testing/grow-rows.ts'
import { addOrganization } from '@slipway/testing/people.ts'
import { createAccessKey } from '../src/accounts/credentials.ts'
import { setUpProject } from '../src/accounts/project-setup.ts'
import type { Database, Tx } from '../src/postgres/database.ts'
import { setOrganizationQuotas } from '../src/store/compute/organization-quotas.ts'
import { type ChangedVm, runLoad } from './load.ts'
import { locations, type RunningService } from './running-service.ts'

export interface Tenant {
  projectId: string
  token: string
}

const largeQuotas = Object.fromEntries(organizationQuotaNames.map((name) => [name, 1_000_000]))

/** Adds organizations with a payment method and very large quotas. Each of their projects has a write key. */
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
      await setOrganizationQuotas(tx, organizationId, largeQuotas)
      for (let p = 0; p < projectsEach; p++) {
        const { id: projectId } = await setUpProject(tx, { organizationId, name: `${name}-${p}` })
        tenants.push({ projectId, token: await addWriteKey(tx, projectId) })
      }
    })
  }
  return tenants
}

/** Adds an access key with the role `write`, and returns its secret. */
export async function addWriteKey(tx: Tx, projectId: string): Promise<string> {
  const scope = { projectId, organizationId: null }
  return (await createAccessKey(tx, { scope, name: 'bench', role: 'write', createdBy: null }))!.secret
}

/** Adds a project with more VMs than fit on a page. Creating them also warms up the service. */
export async function addVms(service: RunningService): Promise<ChangedVm[]> {
  const tenants = await addTenants(service.database, 'reader', 1, 1)
  return createVms(service, tenants, 120)
}

export async function createVms(
  { main }: RunningService,
  tenants: Tenant[],
  count: number,
): Promise<ChangedVm[]> {
  const load = { kind: 'create', url: main.url, tenants, location: locations[0], clients: 8, count } as const
  return (await runLoad(load)).changedVms
}

/** Copies VMs that the service created. Each copy has one operation. A subnet has room for 4,000 copies. */
export async function addCopies(
  service: RunningService,
  templates: ChangedVm[],
  count: number,
): Promise<ChangedVm[]> {
  const { database } = service
  const [running, shutOff] = templates
  await stopVm(service, shutOff!)
  const projectIds = (await addTenants(database, 'copies', 1, 4)).map(({ projectId }) => projectId)
  const share = Math.ceil(count / locations.length)
  for (const [index, location] of locations.entries())
    await growRows(database, {
      ...{ vms: share, operations: share, events: share, after: index * share, location },
      ...{ projectIds, templates: { running: running!.vmId, shutOff: shutOff!.vmId } },
    })
  await database.query({ text: 'ANALYZE' })
  return vmsOf(service, projectIds, count)
}

/**
 * Returns VMs of these projects, each with one of its operations and a key that can read all the VMs. The
 * projects must belong to one organization.
 */
export async function vmsOf(
  { database }: RunningService,
  projectIds: string[],
  count: number,
): Promise<ChangedVm[]> {
  const { rows } = await database.query({
    text: `SELECT v.project_id AS "projectId", v.id AS "vmId",
                  (SELECT o.id FROM operations o WHERE o.resource_id = v.id LIMIT 1) AS "operationId",
                  (SELECT organization_id FROM projects p WHERE p.id = v.project_id) AS "organizationId"
           FROM vms v WHERE v.project_id = ANY ($1) LIMIT $2`,
    values: [projectIds, count],
  })
  const scope = { projectId: null, organizationId: rows[0].organizationId }
  const key = await database.transaction((tx) =>
    createAccessKey(tx, { scope, name: 'bench', role: 'viewer', createdBy: null }),
  )
  return rows.map(({ organizationId: _, ...vm }) => ({ ...vm, token: key!.secret }))
}

export async function stopVm({ main }: RunningService, { projectId, token, vmId }: ChangedVm): Promise<void> {
  const base = `${main.url}/v0.1/projects/${projectId}/vms`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ action: 'STOP' })
  const accepted = await fetch(`${base}/${vmId}`, { method: 'PATCH', headers, body })
  const { operation } = (await accepted.json()) as { operation: { operation_id: string } }
  const ended = await fetch(`${base}/operations/${operation.operation_id}?wait=30`, { headers })
  const { state } = (await ended.json()) as { state: string }
  if (state !== 'SUCCEEDED') throw new Error(`stopping a VM ended with ${state}`)
}
