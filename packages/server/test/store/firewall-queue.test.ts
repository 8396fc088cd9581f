import { createDatabase } from '@slipway/testing/database.ts'
import { addLocation, hostReport, reportHost, rows } from '@slipway/testing/fleet.ts'
import { addOrganization } from '@slipway/testing/people.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setUpProject } from '../../src/accounts/project-setup.ts'
import { Database } from '../../src/postgres/database.ts'
import { releaseAddresses } from '../../src/store/network/addresses.ts'
import {
  claimOutdated,
  claimOutdatedOnHosts,
  isNetworkOutdated,
  listOutdatedProjects,
  recordTriedFirewalls,
} from '../../src/store/network/firewall-queue.ts'
import { plansOf, scansOf } from '../support/explain.ts'
import { addVmRows } from '../support/vm-rows.ts'

let store: Awaited<ReturnType<typeof createDatabase>>
let database: Database
let location: string
let projects: string[]
const first = '00000000-0000-0000-0000-000000000000'

beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 4 })
  location = await addLocation(database)
  await reportHost(database, location, hostReport('h'))
  const organizationId = await addOrganization(database)
  projects = []
  for (const name of ['a', 'b', 'c'])
    projects.push((await database.transaction((tx) => setUpProject(tx, { organizationId, name }))).id)
  const sql = async (text: string, values: unknown[] = []) => (await database.query({ text, values })).rows
  for (const [series, projectId] of projects.toSorted().entries())
    await addVmRows({ sql }, { projectId, series, location, count: 3_000, isAtEngine: false })
  projects.sort()
  await rows(database, 'VACUUM ANALYZE vms')
})
afterAll(async () => {
  await database.close()
  await store.drop()
})

const requestUpdate = (projectId: string, count: number) =>
  rows(
    database,
    `UPDATE vms SET firewall_wanted = firewall_wanted + 1, firewall_next_at = slipway_now() - interval '1 second',
            firewall_attempts = 0
     WHERE id IN (SELECT id FROM vms WHERE project_id = $1 ORDER BY id LIMIT $2)`,
    projectId,
    count,
  )
const scope = (projectId: string) => ({ location, projectId, networkId: null })

test('projects with outdated firewalls are found in turn, regardless of their number of VMs', async () => {
  const [a, b, c] = projects as [string, string, string]
  await requestUpdate(a, 500)
  await requestUpdate(c, 1)
  const found = await listOutdatedProjects(database, location, first, 10)
  expect(found).toEqual([
    { project_id: a, is_due: true },
    { project_id: c, is_due: true },
  ])
  expect(await listOutdatedProjects(database, location, first, 1)).toHaveLength(1)
  expect(await listOutdatedProjects(database, location, a, 10)).toEqual([{ project_id: c, is_due: true }])
  expect(await claimOutdated(database, scope(b), 10)).toEqual([])
  // A claimed VM is not due for another process, but still outdated.
  const [claimed] = await claimOutdated(database, scope(c), 10)
  expect(await claimOutdated(database, scope(c), 10)).toEqual([])
  expect(await listOutdatedProjects(database, location, a, 10)).toEqual([{ project_id: c, is_due: false }])
  await recordTriedFirewalls(database, [
    { id: claimed!.id, generation: claimed!.firewall_wanted, pauseMs: 0 },
  ])
  expect(await listOutdatedProjects(database, location, a, 10)).toEqual([])
})

test('a VM whose update failed comes after VMs that were not tried yet', async () => {
  const b = projects[1]!
  await requestUpdate(b, 3)
  const [tried] = await claimOutdated(database, scope(b), 1)
  await recordTriedFirewalls(database, [{ id: tried!.id, generation: 0, pauseMs: 0 }])
  const after = await claimOutdated(database, scope(b), 2)
  expect(after.map(({ id }) => id)).not.toContain(tried!.id)
  await recordTriedFirewalls(
    database,
    after.map(({ id, firewall_wanted }) => ({ id, generation: firewall_wanted, pauseMs: 0 })),
  )
  expect(await claimOutdated(database, scope(b), 3)).toMatchObject([{ id: tried!.id, firewall_attempts: 1 }])
})

test('a VM whose rules change while they are applied stays outdated', async () => {
  const c = projects[2]!
  await requestUpdate(c, 1)
  const [claimed] = await claimOutdated(database, scope(c), 1)
  await requestUpdate(c, 1)
  await recordTriedFirewalls(database, [
    { id: claimed!.id, generation: claimed!.firewall_wanted, pauseMs: 0 },
  ])
  expect(await claimOutdated(database, scope(c), 1)).toMatchObject([
    { id: claimed!.id, firewall_wanted: claimed!.firewall_wanted + 1 },
  ])
})

test('finding outdated firewalls reads no VMs that are up to date', async () => {
  const [a] = projects as [string]
  await requestUpdate(a, 20)
  const [network] = await rows<{ id: string }>(database, 'SELECT id FROM networks WHERE project_id = $1', a)
  await rows(database, `INSERT INTO held_addresses (address, project_id) VALUES ('198.18.0.9', $1)`, a)
  await rows(database, 'ANALYZE')
  const plans = await plansOf(database, { is_behind: true }, async (db) => {
    await listOutdatedProjects(db, location, first, 1_000)
    await claimOutdated(db, scope(a), 32)
    await isNetworkOutdated(db, { id: network!.id, projectId: a })
    await releaseAddresses(db)
  })
  expect(plans).toHaveLength(4)
  for (const plan of plans) {
    const scans = scansOf(plan, 'vms').filter((node) => !/ModifyTable|Lock/.test(node['Node Type']))
    expect(new Set(scans.map((node) => node['Index Name']))).toSatisfy((names: Set<string>) =>
      [...names].every((name) => name === 'vms_firewall_behind' || name === 'vms_pkey'),
    )
  }
  const [onHosts] = await plansOf(database, {}, (db) => claimOutdatedOnHosts(db, location, ['h'], 10))
  expect(scansOf(onHosts!, 'vms').map((node) => node['Node Type'])).not.toContain('Seq Scan')
})
