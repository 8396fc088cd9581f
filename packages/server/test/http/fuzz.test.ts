import { type Route, routeIds, routeOf } from '@slipway/contract'
import { addOrganization } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { countOf } from '@slipway/testing/setup/counts.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addBystander, type Bystander } from '../support/bystander.ts'
import { makeCallers } from '../support/callers.ts'
import { requestsTo } from '../support/odd-requests.ts'

const batches = countOf('fuzzBatches')
const requestsPerBatch = 16

let service: TestService
let rightful: (route: Route) => string
let others: (string | null)[]
let paramsOf: (name: string) => string[]
let ids: string[]
let isOperator: (token: string | null) => boolean
let bystander: Bystander

beforeAll(async () => {
  service = await startService((config) => {
    config.webhooks.allowPrivateRanges = ['127.0.0.0/8']
  })
  const { project_id, organization_id } = service.credentials
  const callers = await makeCallers(service)
  const { operatorKey } = callers
  rightful = (route) => (route.access === 'operator' ? operatorKey : callers.members.owner)
  isOperator = (token) => token === operatorKey
  others = [callers.writeKey, callers.readKey, callers.stranger, operatorKey, callers.revoked, null]

  const created = await Promise.all([
    // This VM prevents the deletion of the project, because no caller knows its id.
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
  bystander = await addBystander(service)
})
afterAll(() => service.close())

/**
 * Generates requests, mostly by callers that may call the route. Operators may see and change everything, so their
 * requests contain no ids of the bystander.
 */
const anyRequest = fc.constantFrom(...routeIds).chain((id) => {
  const route = routeOf(id)
  const token = fc.oneof(
    { weight: 6, arbitrary: fc.constant<'rightful'>('rightful') },
    { weight: 1, arbitrary: fc.nat({ max: 5 }) },
  )
  const isForeign = fc.nat({ max: 3 }).map((number) => number === 0)
  return fc.record({ token, isForeign }).chain((chosen) => {
    const token = chosen.token === 'rightful' ? rightful(route) : others[chosen.token]!
    const foreign = isOperator(token) ? {} : bystander.ids
    const params = (name: string) => {
      if (chosen.isForeign && foreign[name]) return foreign[name]
      // Suspending the observed tenant would end the observation.
      return id === 'adminOrganizationUpdate' ? paramsOf('organization_id').slice(1) : paramsOf(name)
    }
    const known = [...ids, ...Object.values(foreign).flat()]
    return fc.record({ sent: requestsTo(route, params, known), token: fc.constant(token) })
  })
})

test('invalid requests always get a response that the contract allows, never a 5xx or data of another tenant', async () => {
  const statuses = new Map<number, number>()
  const before = await bystander.readResources()
  const batch = fc.array(anyRequest, { minLength: requestsPerBatch, maxLength: requestsPerBatch })
  await fc.assert(
    fc.asyncProperty(batch, async (requests) => {
      await Promise.all(
        requests.map(async ({ sent: { method, path, ...rest }, token }) => {
          const { status, body } = await service.request(method, path, { token, ...rest })
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          const response = JSON.stringify(body)
          const summary = `${method} ${path} ${rest.body ?? ''} ${response}`
          expect(status, summary).toBeLessThan(500)
          if (isOperator(token)) return
          expect(response.includes(bystander.mark), summary).toBe(false)
          for (const id of bystander.hiddenIds) expect(response.includes(id), summary).toBe(false)
        }),
      )
    }),
    { numRuns: batches },
  )
  const sum = [...statuses.values()].reduce((all, count) => all + count, 0)
  expect(sum).toBe(batches * requestsPerBatch)
  // Enough of the requests are valid to reach the handlers.
  for (const status of [200, 400, 401, 403, 404, 409])
    expect(statuses.get(status), String(status)).toBeGreaterThan(batches / 25)
  expect(await bystander.readResources()).toEqual(before)
}, 240_000)
