import { settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { takeLease } from '../../src/postgres/leases.ts'

/**
 * What one of each may ask of the database. A change that needs more says here why; one that needs less lowers the
 * number.
 */
const budget = {
  // Two of each look in the change's own transaction who calls and for which project: requests gather before it. The stamper
  // and the webhooks that it wakes are not counted: what they do for one of them, they do for many.
  creation: { statements: 16, roundTrips: 5, commits: 5 },
  deletion: { statements: 22, roundTrips: 14, commits: 7 },
  'GET of a VM': { statements: 1, roundTrips: 1, commits: 1 },
  'GET of an operation': { statements: 1, roundTrips: 1, commits: 1 },
  // One for the statements with its beginning, one for its end.
  transaction: { statements: 3, roundTrips: 2, commits: 1 },
}

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

/** How often each statement was sent, and each kind of transaction committed, while the work was done. */
async function sentDuring(work: () => Promise<unknown>): Promise<Map<string, number>> {
  const { traffic } = service.database
  const sent = new Map<string, number>()
  traffic.observer = (what, name) => sent.set(`${what} ${name}`, (sent.get(`${what} ${name}`) ?? 0) + 1)
  await work()
  traffic.observer = undefined
  return sent
}

const total = (sent: Map<string, number>, what: 'statement' | 'round trip' | 'commit'): number =>
  [...sent].reduce((sum, [name, count]) => sum + (name.startsWith(what) ? count : 0), 0)

/** What is known for half a second is known now: a slow machine looks no more often than a quick one. */
async function warmUp(): Promise<void> {
  await service.ok('vmList')
  await service.simulator().inspectVm({ id: uuid(), host: '' })
}

interface Round {
  before?: () => Promise<unknown>
  work: () => Promise<unknown>
  after?: () => Promise<unknown>
}

/** For each statement the minimum of many rounds counts, because background work does not occur in every round. */
async function expectWithin(name: keyof typeof budget, { before, work, after }: Round): Promise<void> {
  const { statements, roundTrips, commits } = budget[name]
  let least: Map<string, number> | undefined
  const isWithin = (sent: Map<string, number>) =>
    total(sent, 'statement') <= statements &&
    total(sent, 'round trip') <= roundTrips &&
    total(sent, 'commit') <= commits
  for (let round = 0; round < 60 && !(least && isWithin(least)); round++) {
    await before?.()
    await warmUp()
    const sent = await sentDuring(work)
    await after?.()
    least = least ? fewest(least, sent) : sent
  }
  const list = [...least!].map(([each, count]) => `${each}: ${count}`).join('\n')
  expect(total(least!, 'statement'), `a ${name} sends\n${list}`).toBeLessThanOrEqual(statements)
  expect(total(least!, 'round trip'), `a ${name} sends\n${list}`).toBeLessThanOrEqual(roundTrips)
  expect(total(least!, 'commit'), `a ${name} sends\n${list}`).toBeLessThanOrEqual(commits)
}

const fewest = (one: Map<string, number>, other: Map<string, number>): Map<string, number> =>
  new Map(
    [...one].flatMap(([name, count]) => {
      const least = Math.min(count, other.get(name) ?? 0)
      return least > 0 ? [[name, least] as const] : []
    }),
  )

test('a creation and a deletion stay within their budget of statements, round trips and commits', async () => {
  const { newVm, removeVm, succeeded } = resourcesOf(service)
  let id = ''
  const create = async () => {
    id = await newVm()
  }
  const remove = async () => succeeded(await removeVm(id))
  const after = () => settle(service)
  await expectWithin('creation', { work: create, after: () => remove().then(after) })
  await expectWithin('deletion', { before: create, work: remove, after })
})

test('creations that come together cost less than half each of one that comes alone', async () => {
  const { newVm, removeVm, succeeded } = resourcesOf(service)
  const together = 8
  /** The cost of a batch divided by the cost of the same requests one by one. */
  const shareOfARound = async () => {
    const ids: string[] = []
    const create = async () => ids.push(await newVm())
    await warmUp()
    const sent = await sentDuring(() => Promise.all(Array.from({ length: together }, create)))
    await Promise.all(ids.map(async (id) => succeeded(await removeVm(id))))
    await settle(service)
    const { statements, commits } = budget.creation
    return Math.max(total(sent, 'statement') / statements, total(sent, 'commit') / commits) / together
  }
  // A busy machine tears rounds apart, and in some the process does what it does now and then: one has to be whole.
  await expect.poll(shareOfARound).toBeLessThan(1 / 2)
})

test('a GET of a record takes one statement', async () => {
  const { createVm, ended } = resourcesOf(service)
  const begun = await createVm()
  await ended(begun)
  const { operation_id, metadata } = begun.operation
  const params = { vm_id: metadata.id, operation_id }
  await expectWithin('GET of a VM', { work: () => service.ok('vmGet', { params }) })
  await expectWithin('GET of an operation', { work: () => service.ok('operationGet', { params }) })
})

test('what a transaction sends without waiting is one round trip, its beginning included', async () => {
  const { database } = service
  const work = () =>
    database.transaction((tx) => Promise.all([1, 2, 3].map((n) => tx.query({ text: `SELECT ${n}` }))))
  await expectWithin('transaction', { work })
})

test.each([false, true])(
  'a statement that only the commit waits for takes its transaction back by its own error (others follow: %s)',
  async (isFollowed) => {
    const { database } = service
    const lease = (holder = uuid()) => ({ name: `taken back ${isFollowed}`, holder, ms: 60_000 })
    const failing = database.transaction(async (tx) => {
      await takeLease(tx, lease())
      await tx.awaitAtCommit(tx.query({ text: 'SELECT 1 / 0' }))
      if (isFollowed) await takeLease(tx, lease())
    })
    await expect(failing).rejects.toThrow('division by zero')
    expect(await takeLease(database, lease())).toBe(true)
  },
)

test('metrics show what the process has asked of the database', async () => {
  const { statements } = service.database.traffic
  const text = await (await fetch(`${service.url}/metrics`)).text()
  expect(Number(/^slipway_database_statements_total (\d+)$/m.exec(text)![1])).toBeGreaterThanOrEqual(
    statements,
  )
  for (const name of ['round_trips', 'commits']) expect(text).toContain(`slipway_database_${name}_total `)
})
