import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { addProject, ownerToken } from '@slipway/testing/people.ts'
import { freshName, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterEach, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/server.ts'

const location = 'us-east1-a'

let service: TestService
let other: Server
let token: string
/** Two projects with their first networks, which have the same range. */
let projects: [string, string]

beforeAll(async () => {
  service = await startService()
  other = await service.another((config) => {
    config.server.role = 'api'
  })
  token = await ownerToken(service)
  const { organization_id } = service.credentials
  projects = [
    await addProject(service, token, organization_id, 'first'),
    await addProject(service, token, organization_id, 'second'),
  ]
  reportBridges(service)
  await settle(service)
  return () => service.close()
})

afterEach(async () => {
  for (const project_id of projects) await clear(project_id)
  await settle(service)
  await checkInvariants(service)
})

/** Makes the engine report bridges on its hosts from now on, as the Incus engine does. */
function reportBridges({ simulator }: TestService): void {
  const engine = simulator(location)
  const inventory = engine.inventory.bind(engine)
  engine.inventory = async function* () {
    for await (const report of inventory(AbortSignal.timeout(60_000)))
      yield { ...report, capabilities: { ...report.capabilities, network: 'bridge' } }
  }
}

const create = (project_id: string, changes = {}) =>
  service.call('vmCreate', { token, params: { project_id }, body: vmBody({ type: 'a40.1x', ...changes }) })
const vmsOf = async (project_id: string) =>
  (await service.ok('vmList', { token, params: { project_id } })).items
const remove = (project_id: string, vm_id: string) =>
  service.call('vmDelete', { token, params: { project_id, vm_id } })
async function clear(project_id: string): Promise<void> {
  for (const { id } of await vmsOf(project_id)) await remove(project_id, id)
  await eventually(async () => (await vmsOf(project_id)).length === 0)
}
async function newVm(project_id: string, changes = {}): Promise<string> {
  const { status, body } = await create(project_id, changes)
  expect(status, JSON.stringify(body)).toBe(200)
  const { operation_id, metadata } = body.operation
  await eventually(async () => {
    const operation = await service.ok('operationGet', { token, params: { project_id, operation_id } })
    return operation.state === 'SUCCEEDED'
  })
  return metadata.id
}

test('a range that VMs of another project use on bridges is out of stock until those VMs are removed', async () => {
  const [first, second] = projects
  const vm = await newVm(first)
  await newVm(first)
  const refusal = {
    status: 409,
    body: {
      code: 'out_of_stock',
      message: expect.stringMatching(
        /out of stock in us-east1-a.*overlaps 172\.27\.\d+\.\d+\/\d+\..*another range/,
      ),
      available_locations: ['us-west1-a', 'eu-north1-a'],
    },
  }
  expect(await create(second)).toMatchObject(refusal)
  const body = { vm: vmBody({ type: 'a40.1x' }) }
  const estimate = await service.call('estimateCreate', { token, params: { project_id: second }, body })
  expect(estimate).toMatchObject(refusal)

  const network = await service.ok('networkCreate', {
    ...{ token, params: { project_id: second } },
    body: { name: freshName('network'), cidr: '10.20.0.0/16' },
  })
  const subnet = await service.ok('subnetCreate', {
    ...{ token, params: { project_id: second } },
    body: { name: freshName('subnet'), vpc_network_id: network.id, cidr: '10.20.0.0/24', location },
  })
  await newVm(second, { subnet_id: subnet.id })
  // Other locations have no bridges.
  await newVm(second, { location: 'us-west1-a' })
  await checkInvariants(service)

  await remove(first, vm)
  await eventually(async () => (await vmsOf(first)).length === 1)
  expect(await create(second)).toMatchObject(refusal)
  await clear(first)
  await newVm(second)
  expect(await create(first)).toMatchObject({ status: 409, body: { code: 'out_of_stock' } })
})

test('a VM with location “any” goes where no other project uses its range', async () => {
  const [first, second] = projects
  await newVm(first)
  const locationsOf = async () => (await vmsOf(second)).map((vm) => vm.location)
  await newVm(second, { location: 'any' })
  expect(await locationsOf()).toEqual(['us-west1-a'])

  const { items } = await service.ok('subnetList', { token, params: { project_id: second } })
  const subnet_id = items.find(({ name }) => name === `default-subnet-${location}`)!.id
  expect(await create(second, { location: 'any', subnet_id })).toMatchObject({ status: 409 })
  await clear(first)
  await newVm(second, { location: 'any', subnet_id })
  expect((await locationsOf()).sort()).toEqual([location, 'us-west1-a'])
})

test('if two projects request a range at the same time, one gets it, even while its last VM is being removed', async () => {
  const post = async (index: number, project_id: string) => {
    const base = index % 2 === 0 ? service.url : other.url
    const response = await fetch(`${base}/v0.1/projects/${project_id}/vms`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(vmBody({ type: 'a40.1x' })),
    })
    const { code = 'ok' } = (await response.json()) as { code?: string }
    return { project_id, code }
  }
  for (let round = 0; round < 8; round++) {
    const leaving = await Promise.all(
      projects.map(async (project_id) => (await vmsOf(project_id)).map(({ id }) => remove(project_id, id))),
    )
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => post(index, projects[(index >> 1) % 2]!)),
    )
    await Promise.all(leaving.flat())
    expect(answers.map(({ code }) => code).filter((code) => !['ok', 'out_of_stock'].includes(code))).toEqual(
      [],
    )
    const winners = new Set(answers.filter(({ code }) => code === 'ok').map(({ project_id }) => project_id))
    // In later rounds, VMs of the previous round may still exist and keep the range for their project.
    expect(winners.size).toBe(1)
    const [project] = winners
    for (const project_id of projects.filter((each) => each !== project))
      await eventually(async () => (await vmsOf(project_id)).length === 0)
    await eventually(async () => {
      const running = await service.sql(`SELECT FROM operations WHERE state = 'IN_PROGRESS'`)
      return running.length === 0
    })
    await settle(service)
    await checkInvariants(service)
  }
})
