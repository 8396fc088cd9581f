import { createDatabase } from '@slipway/testing/database.ts'
import { defaultConfig } from '@slipway/testing/fleet.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { Database } from '../../src/postgres/database.ts'
import {
  fillOrganizationQuotas,
  listOrganizationQuotas,
  setOrganizationQuotas,
} from '../../src/store/compute/organization-quotas.ts'
import {
  deleteQuotas,
  listQuotas,
  type QuotaAmounts,
  readQuotas,
  releaseQuota,
  setQuotas,
  takeQuota,
} from '../../src/store/compute/quotas.ts'
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

async function addProject(max: number | null, organizationId?: string): Promise<string> {
  const projectId = uuid()
  await database.transaction(async (tx) => {
    const owner = organizationId ?? (await insertOrganization(tx, uuid(), 'Harbour Labs')).id
    await insertProject(tx, { id: projectId, organizationId: owner, name: projectId, labels: {} })
    await setQuotas(tx, projectId, [
      { name: 'vms', max },
      { name: 'a100_gpus', max },
    ])
  })
  return projectId
}

/** Takes the amounts. Returns the name of the exceeded quota, if any. */
const take = (projectId: string, amounts: QuotaAmounts) =>
  database.transaction(async (tx) => {
    const request = { projectId, amounts }
    const shortage = (await readQuotas(tx, request)).take(request)
    if (!shortage) await takeQuota(tx, request)
    return shortage
  })

async function used(projectId: string) {
  return Object.fromEntries((await listQuotas(database, projectId)).map((row) => [row.name, row.used]))
}

test('a request takes all of its quotas or none, and the refusal names the exceeded quota', async () => {
  const projectId = await addProject(10)
  expect(await take(projectId, { vms: 1, a100_gpus: 8 })).toBeNull()
  expect(await take(projectId, { vms: 1, a100_gpus: 4 })).toEqual({
    name: 'a100_gpus',
    holder: 'project',
    requested: 4,
    available: 2,
  })
  expect(await used(projectId)).toEqual({ vms: 1, a100_gpus: 8 })
  await database.transaction((tx) => releaseQuota(tx, projectId, { vms: 1, a100_gpus: 8 }))
  expect(await used(projectId)).toEqual({ vms: 0, a100_gpus: 0 })
})

test('a quota that does not exist allows nothing', async () => {
  const projectId = await addProject(10)
  expect(await take(projectId, { vms: 1, disk_gib: 1 })).toMatchObject({ name: 'disk_gib', available: 0 })
  expect(await used(projectId)).toEqual({ vms: 0, a100_gpus: 0 })
})

test('concurrent requests never exceed a quota, in any order of quotas', async () => {
  const projectId = await addProject(25)
  const responses = await Promise.all(
    Array.from({ length: 80 }, (_, i) =>
      take(projectId, i % 2 ? { vms: 1, a100_gpus: 1 } : { a100_gpus: 1, vms: 1 }),
    ),
  )
  expect(responses.filter((shortage) => shortage === null)).toHaveLength(25)
  expect(await used(projectId)).toEqual({ vms: 25, a100_gpus: 25 })
})

test('a quota keeps its usage when its limit is set below it', async () => {
  const projectId = await addProject(10)
  await take(projectId, { vms: 8 })
  await database.transaction((tx) => setQuotas(tx, projectId, [{ name: 'vms', max: 5 }]))
  expect(await take(projectId, { vms: 1 })).toMatchObject({ name: 'vms', available: 0 })
  await database.transaction((tx) => releaseQuota(tx, projectId, { vms: 4 }))
  expect(await take(projectId, { vms: 1 })).toBeNull()
})

async function addOrganization(max: number): Promise<string> {
  const organizationId = uuid()
  await database.transaction(async (tx) => {
    await insertOrganization(tx, organizationId, 'Harbour Labs')
    await setOrganizationQuotas(tx, organizationId, { vms: max, a100_gpus: max })
  })
  return organizationId
}
const usedTogether = async (organizationId: string) =>
  Object.fromEntries(
    (await listOrganizationQuotas(database, organizationId)).map((row) => [row.name, row.used]),
  )

test('an organization quota is shared by its projects, whether or not they have their own quota', async () => {
  const organizationId = await addOrganization(10)
  const [own, none] = [await addProject(6, organizationId), await addProject(null, organizationId)]
  expect(await take(own, { vms: 7 })).toMatchObject({ holder: 'project', available: 6 })
  expect(await take(own, { vms: 6 })).toBeNull()
  expect(await take(none, { vms: 5 })).toEqual({
    name: 'vms',
    holder: 'organization',
    requested: 5,
    available: 4,
  })
  expect(await listQuotas(database, none)).toContainEqual({ name: 'vms', max: 10, used: 0, available: 4 })
  expect(await listQuotas(database, own)).toContainEqual({ name: 'vms', max: 6, used: 6, available: 0 })
  expect(await take(none, { vms: 4 })).toBeNull()
  expect(await usedTogether(organizationId)).toEqual({ vms: 10, a100_gpus: 0 })
  await database.transaction((tx) => releaseQuota(tx, own, { vms: 2 }))
  expect(await usedTogether(organizationId)).toEqual({ vms: 8, a100_gpus: 0 })
  await database.transaction((tx) => deleteQuotas(tx, none))
  expect(await usedTogether(organizationId)).toEqual({ vms: 4, a100_gpus: 0 })
})

test('concurrent requests of many projects never exceed an organization quota', async () => {
  const organizationId = await addOrganization(25)
  const projects = await Promise.all([1, 2, 3, 4].map((i) => addProject(i === 1 ? 3 : null, organizationId)))
  const responses = await Promise.all(
    Array.from({ length: 80 }, (_, i) =>
      take(projects[i % 4]!, i % 2 ? { vms: 1, a100_gpus: 1 } : { a100_gpus: 1, vms: 1 }),
    ),
  )
  expect(responses.filter((shortage) => shortage === null)).toHaveLength(25)
  expect(await usedTogether(organizationId)).toEqual({ vms: 25, a100_gpus: 25 })
  expect((await used(projects[0]!)).vms).toBeLessThanOrEqual(3)
})

test('an organization without quotas gets the configured ones, or its usage if that is higher', async () => {
  const organizationId = (await database.transaction((tx) => insertOrganization(tx, uuid(), 'From before')))
    .id
  const projectId = await addProject(50, organizationId)
  await addProject(50, organizationId)
  await take(projectId, { vms: 30, a100_gpus: 2 })
  const given = { ...defaultConfig().quotas, vms: 20, projects: 1 }
  const fill = (limits = given) => database.transaction((tx) => fillOrganizationQuotas(tx, limits))
  await fill()
  const limits = async () =>
    Object.fromEntries(
      (await listOrganizationQuotas(database, organizationId)).map((row) => [row.name, row.max]),
    )
  expect(await limits()).toEqual({ ...given, vms: 30, projects: 2 })
  await fill({ ...given, vms: 1000 })
  expect(await limits()).toMatchObject({ vms: 30 })
})
