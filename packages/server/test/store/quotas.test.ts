import { createDatabase } from '@slipway/testing/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import {
  giveBackQuota,
  listQuotas,
  type QuotaAmounts,
  setQuotas,
  takeQuota,
} from '../../src/store/compute/quotas.ts'
import { Database } from '../../src/store/database.ts'
import { insertOrganization } from '../../src/store/identity/organizations.ts'
import { insertProject } from '../../src/store/identity/projects.ts'

let store: Awaited<ReturnType<typeof createDatabase>>
let database: Database
beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 8 })
})
afterAll(async () => {
  await database.close()
  await store.drop()
})

async function addProject(max: number): Promise<string> {
  const [organizationId, projectId] = [uuid(), uuid()]
  await database.transaction(async (tx) => {
    await insertOrganization(tx, organizationId, 'Harbour Labs')
    await insertProject(tx, projectId, organizationId, 'default')
    await setQuotas(tx, projectId, [
      { name: 'vms', max },
      { name: 'a100_gpus', max },
    ])
  })
  return projectId
}

const take = (projectId: string, amounts: QuotaAmounts) =>
  database.transaction((tx) => takeQuota(tx, projectId, amounts))

async function used(projectId: string) {
  return Object.fromEntries((await listQuotas(database, projectId)).map((row) => [row.name, row.used]))
}

test('a request takes all of its quotas or nothing, and is told which does not cover it', async () => {
  const projectId = await addProject(10)
  expect(await take(projectId, { vms: 1, a100_gpus: 8 })).toBeNull()
  expect(await take(projectId, { vms: 1, a100_gpus: 4 })).toEqual({
    name: 'a100_gpus',
    requested: 4,
    available: 2,
  })
  expect(await used(projectId)).toEqual({ vms: 1, a100_gpus: 8 })
  await database.transaction((tx) => giveBackQuota(tx, projectId, { vms: 1, a100_gpus: 8 }))
  expect(await used(projectId)).toEqual({ vms: 0, a100_gpus: 0 })
})

test('a quota that does not exist covers nothing', async () => {
  const projectId = await addProject(10)
  expect(await take(projectId, { vms: 1, disk_gib: 1 })).toMatchObject({ name: 'disk_gib', available: 0 })
  expect(await used(projectId)).toEqual({ vms: 0, a100_gpus: 0 })
})

test('a quota never gives more than there is to many at once, whatever order they name it in', async () => {
  const projectId = await addProject(25)
  const answers = await Promise.all(
    Array.from({ length: 80 }, (_, i) =>
      take(projectId, i % 2 ? { vms: 1, a100_gpus: 1 } : { a100_gpus: 1, vms: 1 }),
    ),
  )
  expect(answers.filter((shortage) => shortage === null)).toHaveLength(25)
  expect(await used(projectId)).toEqual({ vms: 25, a100_gpus: 25 })
})

test('a quota keeps what is used when its limit sinks below it', async () => {
  const projectId = await addProject(10)
  await take(projectId, { vms: 8 })
  await database.transaction((tx) => setQuotas(tx, projectId, [{ name: 'vms', max: 5 }]))
  expect(await take(projectId, { vms: 1 })).toMatchObject({ name: 'vms', available: 0 })
  await database.transaction((tx) => giveBackQuota(tx, projectId, { vms: 4 }))
  expect(await take(projectId, { vms: 1 })).toBeNull()
})
