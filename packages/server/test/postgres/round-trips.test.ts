import { settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { takeLease } from '../../src/postgres/leases.ts'

/**
 * The database work that each request may cause. If a change needs more, explain it here; if it needs less,
 * lower the number.
 */
const budget = {
  // Two statements of each request read the caller and the project in the transaction, because the batch formed
  // before the transaction began. The stamper and the webhooks that it wakes are not counted, because they process
  // many events together.
  creation: { statements: 16, roundTrips: 5, commits: 5 },
  deletion: { statements: 22, roundTrips: 14, commits: 7 },
  'GET of a VM': { statements: 1, roundTrips: 1, commits: 1 },
  'GET of an operation': { statements: 1, roundTrips: 1, commits: 1 },
  // One round trip for BEGIN and the statements, one for COMMIT.
  transaction: { statements: 3, roundTrips: 2, commits: 1 },
}

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

/** Counts how often each statement was sent, and each kind of transaction committed, during the work. */
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

/** Fills the caches that last half a second, so that a slow machine reads no more often than a fast one. */
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

test('concurrent creations each cost less than half of a single one', async () => {
  const { newVm, removeVm, succeeded } = resourcesOf(service)
  const together = 8
  /** Returns the cost of a batch divided by the cost of the same requests one by one. */
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
  // A busy machine splits some batches, and background tasks run in some rounds, so one good round is enough.
  await expect.poll(shareOfARound).toBeLessThan(1 / 2)
})

test('a GET of a record takes one statement', async () => {
  const { createVm, ended } = resourcesOf(service)
  const accepted = await createVm()
  await ended(accepted)
  const { operation_id, metadata } = accepted.operation
  const params = { vm_id: metadata.id, operation_id }
  await expectWithin('GET of a VM', { work: () => service.ok('vmGet', { params }) })
  await expectWithin('GET of an operation', { work: () => service.ok('operationGet', { params }) })
})

test('pipelined statements of a transaction take one round trip, including BEGIN', async () => {
  const { database } = service
  const work = () =>
    database.transaction((tx) => Promise.all([1, 2, 3].map((n) => tx.query({ text: `SELECT ${n}` }))))
  await expectWithin('transaction', { work })
})

test.each([false, true])(
  'a failing statement that is awaited at commit rolls back its transaction with its own error (others follow: %s)',
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

test('metrics show how much the process uses the database', async () => {
  const { statements } = service.database.traffic
  const text = await (await fetch(`${service.url}/metrics`)).text()
  expect(Number(/^slipway_database_statements_total (\d+)$/m.exec(text)![1])).toBeGreaterThanOrEqual(
    statements,
  )
  for (const name of ['round_trips', 'commits']) expect(text).toContain(`slipway_database_${name}_total `)
})
