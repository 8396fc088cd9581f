import { addKey, addOrganization, addProject, addUser, tokenOf } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import type { TestService } from '@slipway/testing/service.ts'

/** A tenant whose data no other tenant may see. */
export interface Bystander {
  /** A text in every name and description of this tenant, and in no request of other tenants. */
  mark: string
  /** Ids by path parameter. */
  ids: Record<string, string[]>
  /** Ids that are in no request, because ids that were sent may be returned, for example in names. */
  hiddenIds: string[]
  /** Returns this tenant's resources and the actors of their changes, which other tenants must not affect. */
  readResources(): Promise<unknown>
}

export async function addBystander(service: TestService): Promise<Bystander> {
  const mark = 'zq-bystander'
  const organization_id = await addOrganization(service.database, `${mark} organization`)
  const owner = await addUser(service.database, {
    email: `${mark}@example.com`,
    memberOf: { [organization_id]: 'owner' },
  })
  const token = await tokenOf(service.database, owner)
  const project_id = await addProject(service, token, organization_id, `${mark}-project`)
  const params = { project_id, organization_id }
  const key = await addKey(service, token, project_id, 'write')
  const asKey = { token: key.secret, params }
  const started = [
    await service.ok('vmCreate', { ...asKey, body: { ...vmBody(), name: `${mark}-vm` } }),
    await service.ok('diskCreate', {
      ...asKey,
      body: { name: `${mark}-disk`, size: '10GiB', location: 'us-east1-a' },
    }),
  ]
  for (const { operation } of started)
    await service.ok('operationGet', {
      ...asKey,
      params: { ...params, operation_id: operation.operation_id },
      query: { wait: 20 },
    })
  const hiddenKey = await addKey(service, token, project_id, 'read')
  const hidden = await service.ok('diskCreate', {
    ...asKey,
    body: { name: `${mark}-hidden`, size: '10GiB', location: 'us-east1-a' },
  })
  const webhook = await service.ok('webhookCreate', {
    token,
    params,
    body: { url: `http://127.0.0.1:9/${mark}`, event_types: ['vm.running'] },
  })
  const networks = (await service.ok('networkList', asKey)).items
  const rules = (await service.ok('firewallRuleList', asKey)).items
  const [vm, disk] = started.map(({ operation }) => operation)
  const ids: Record<string, string[]> = {
    project_id: [project_id],
    organization_id: [organization_id],
    user_id: [owner.id],
    key_id: [key.id],
    webhook_id: [webhook.id],
    vm_id: [vm!.metadata.id],
    disk_id: [disk!.metadata.id],
    operation_id: [vm!.operation_id, disk!.operation_id],
    network_id: networks.map(({ id }) => id),
    subnet_id: networks.flatMap(({ subnets }) => subnets),
    rule_id: rules.map(({ id }) => id),
  }
  const readResources = () =>
    service.sql(
      `SELECT 'vm' AS kind, id::text, name FROM vms WHERE project_id = $1 AND deleted_at IS NULL
       UNION ALL SELECT 'disk', id::text, name FROM disks WHERE project_id = $1
       UNION ALL SELECT 'network', id::text, name FROM networks WHERE project_id = $1
       UNION ALL SELECT 'project', id::text, name FROM projects WHERE organization_id = $2 AND deleted_at IS NULL
       UNION ALL SELECT 'key', id::text, name FROM access_keys WHERE project_id = $1 AND revoked_at IS NULL
       UNION ALL SELECT 'member', user_id::text, role FROM memberships WHERE organization_id = $2
       UNION ALL SELECT DISTINCT 'actor', actor, '' FROM events_written
         WHERE (project_id = $1 OR organization_id = $2) AND actor <> 'system'
       ORDER BY 1, 2`,
      [project_id, organization_id],
    )
  const hiddenIds = [hiddenKey.id, hidden.operation.operation_id, hidden.operation.metadata.id]
  return { mark, ids, hiddenIds, readResources }
}
