import { eventually } from '@slipway/testing/eventually.ts'
import { addOrganization, addProject, addUser, ownerToken, tokenOf } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { type TestService, useService } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'
import { holdCalls } from '../support/held-calls.ts'

interface Tenant {
  token: string
  params: { project_id: string }
}

async function addTenant(service: TestService, name: string): Promise<Tenant> {
  const organization = await addOrganization(service.database, name)
  const owner = await addUser(service.database, { memberOf: { [organization]: 'owner' } })
  const token = await tokenOf(service.database, owner)
  return { token, params: { project_id: await addProject(service, token, organization, name) } }
}

const createVms = async (service: TestService, tenant: Tenant, count: number) => {
  for (let i = 0; i < count; i++)
    await service.ok('vmCreate', { ...tenant, body: { ...vmBody(), public_ip: 'none' } })
}

const createDisk = async (service: TestService, tenant: Tenant, name: string): Promise<string> => {
  const body = { name, size: '1GiB', location: 'us-east1-a' }
  return (await service.ok('diskCreate', { ...tenant, body })).operation.operation_id
}

const heldSlots = async ({ sql }: TestService) =>
  (await sql('SELECT FROM operation_queue WHERE lease_token IS NOT NULL')).length

/** Waits for the operation, and checks that the hanging operations still have their slots. */
async function expectEnd(service: TestService, tenant: Tenant, operation_id: string): Promise<void> {
  const before = await heldSlots(service)
  const ended = await eventually(async () => {
    const now = await service.ok('operationGet', { ...tenant, params: { ...tenant.params, operation_id } })
    return now.state !== 'IN_PROGRESS' && now
  })
  expect(ended.state).toBe('SUCCEEDED')
  expect(await heldSlots(service)).toBeLessThanOrEqual(before)
}

test('a long queue of one project does not block another project', async () => {
  const service = await useService((config) => {
    config.operations.concurrency = 8
  })
  const { organization_id, project_id } = service.credentials
  const token = await ownerToken(service)
  const flooder = { token, params: { project_id } }
  const other = { token, params: { project_id: await addProject(service, token, organization_id, 'other') } }

  // Every VM of the first project hangs. Without a limit, its queue would use all eight slots.
  holdCalls(service.simulator(), 'ensureVm')
  await createVms(service, flooder, 16)
  await eventually(async () => (await heldSlots(service)) === 6)
  await expectEnd(service, other, await createDisk(service, other, 'theirs'))
  expect(await heldSlots(service)).toBe(6)
})

test('long queues of two organizations do not block a third', async () => {
  const service = await useService((config) => {
    config.operations.concurrency = 8
  })
  const [one, two, third] = await Promise.all(['one', 'two', 'third'].map((name) => addTenant(service, name)))
  holdCalls(service.simulator(), 'ensureVm')
  await createVms(service, one!, 8)
  await createVms(service, two!, 8)
  await eventually(async () => (await heldSlots(service)) === 7)
  await expectEnd(service, third!, await createDisk(service, third!, 'theirs'))
  expect(await heldSlots(service)).toBe(7)
})

test('when slots are scarce, organizations and their projects are served in turn', async () => {
  const service = await useService((config) => {
    config.operations.concurrency = 1
  })
  const [first, flooder, other] = await Promise.all(
    ['first', 'flooder', 'other'].map((name) => addTenant(service, name)),
  )
  const { release, called } = holdCalls(service.simulator(), 'ensureDisk')
  await createDisk(service, first!, 'holds-the-slot')
  await called
  for (let i = 0; i < 6; i++) await createDisk(service, flooder!, `flood-${i}`)
  for (let i = 0; i < 2; i++) await createDisk(service, other!, `other-${i}`)
  release()
  const rows = await eventually(async () => {
    const ended = await service.sql<{ name: string }>(
      `SELECT request ->> 'name' AS name FROM operations WHERE state = 'SUCCEEDED' ORDER BY completed_at`,
    )
    return ended.length === 9 && ended
  })
  expect(rows.map(({ name }) => name)).toEqual([
    ...['holds-the-slot', 'flood-0', 'other-0', 'flood-1', 'other-1'],
    ...['flood-2', 'flood-3', 'flood-4', 'flood-5'],
  ])
})
