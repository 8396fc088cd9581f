import { type Route, routeIds, routeOf } from '@slipway/contract'
import { addOrganization } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeCallers } from '../support/callers.ts'
import { requestsTo } from '../support/odd-requests.ts'

const batches = 300
const requestsPerBatch = 8

let service: TestService
let rightful: (route: Route) => string
let others: (string | null)[]
let paramsOf: (name: string) => string[]
let ids: string[]

beforeAll(async () => {
  service = await startService()
  const { project_id, organization_id } = service.credentials
  const callers = await makeCallers(service)
  const { operatorKey } = callers
  rightful = (route) => (route.access === 'operator' ? operatorKey : callers.members.owner)
  others = [callers.writeKey, callers.readKey, callers.stranger, operatorKey, callers.revoked, null]

  const created = await Promise.all([
    // Keeps the project from being deleted; its id is known to nobody.
    service.ok('vmCreate', { body: vmBody() }),
    service.ok('vmCreate', { body: vmBody() }),
    service.ok('diskCreate', { body: { name: 'fuzzed', size: '10GiB', location: 'us-east1-a' } }),
  ])
  for (const { operation } of created) await service.ended(operation.operation_id)
  const [, vm, disk] = created.map(({ operation }) => operation)
  const networks = (await service.ok('networkList')).items
  const rules = (await service.ok('firewallRuleList')).items
  const hosts = (await service.ok('adminHostList', { token: operatorKey })).items
  const images = (await service.ok('imageList')).items
  const other = await addOrganization(service.database, 'fuzzed')
  const known: Record<string, string[]> = {
    project_id: [project_id],
    organization_id: [organization_id, other],
    vm_id: [vm!.metadata.id],
    disk_id: [disk!.metadata.id],
    network_id: networks.map(({ id }) => id),
    subnet_id: networks.flatMap(({ subnets }) => subnets),
    rule_id: rules.map(({ id }) => id),
    operation_id: [vm!.operation_id, disk!.operation_id],
    host_id: hosts.slice(0, 5).map(({ id }) => id),
    gpu_id: hosts.slice(0, 5).map(({ gpus }) => gpus[0]!.id),
    image_id: images.map(({ id }) => id),
  }
  ids = Object.values(known).flat()
  paramsOf = (name) => known[name] ?? ids
})
afterAll(() => service.close())

test('odd requests never get a 5xx, and always an answer of the contract', async () => {
  const statuses = new Map<number, number>()
  const request = fc.constantFrom(...routeIds).chain((id) => {
    const route = routeOf(id)
    // Suspending the tenant that is looked at would end the looking.
    const params = (name: string) =>
      id === 'adminOrganizationUpdate' ? paramsOf('organization_id').slice(1) : paramsOf(name)
    const token = fc.oneof(
      { weight: 6, arbitrary: fc.constant<string | null>(rightful(route)) },
      { weight: 1, arbitrary: fc.constantFrom(...others) },
    )
    return fc.record({ sent: requestsTo(route, params, ids), token })
  })
  const batch = fc.array(request, { minLength: requestsPerBatch, maxLength: requestsPerBatch })
  await fc.assert(
    fc.asyncProperty(batch, async (requests) => {
      await Promise.all(
        requests.map(async ({ sent: { method, path, ...rest }, token }) => {
          const { status, body } = await service.request(method, path, { token, ...rest })
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          expect(status, `${method} ${path} ${rest.body ?? ''} ${JSON.stringify(body)}`).toBeLessThan(500)
        }),
      )
    }),
    { numRuns: batches, seed: Number(process.env.FUZZ_SEED ?? 2611) },
  )
  const sum = [...statuses.values()].reduce((all, count) => all + count, 0)
  expect(sum).toBeGreaterThanOrEqual(2000)
  // They are odd, but not so odd that nothing is reached.
  for (const status of [200, 400, 401, 403, 404, 409])
    expect(statuses.get(status), String(status)).toBeGreaterThan(5)
}, 240_000)
