import { settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { takeLease } from '../../src/store/leases.ts'

/**
 * What one of each may ask of the database. A change that needs more says here why; one that needs less lowers the
 * number.
 */
const budget = {
  // Two of each look in the change's own transaction who calls and for which project: requests gather before it. Six
  // statements, eight round trips and four commits are those of the stamper, which is woken by the beginning and by the
  // end.
  creation: { statements: 26, roundTrips: 22, commits: 9 },
  deletion: { statements: 29, roundTrips: 25, commits: 11 },
  'GET of a VM': { statements: 1, roundTrips: 1, commits: 1 },
  'GET of an operation': { statements: 1, roundTrips: 1, commits: 1 },
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

/** Of each statement the fewest of many rounds: what the process does now and then is not in all of them. */
async function leastOf(rounds: number, work: () => Promise<unknown>): Promise<Map<string, number>> {
  const [first, ...others] = await inTurn(rounds, () => sentDuring(work))
  const least = [...first!].map(([name, count]): [string, number] => [
    name,
    Math.min(count, ...others.map((sent) => sent.get(name) ?? 0)),
  ])
  return new Map(least.filter(([, count]) => count > 0))
}

async function inTurn<T>(count: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let n = 0; n < count; n++) results.push(await work())
  return results
}

const total = (sent: Map<string, number>, what: 'statement' | 'round trip' | 'commit'): number =>
  [...sent].reduce((sum, [name, count]) => sum + (name.startsWith(what) ? count : 0), 0)

function expectWithin(name: keyof typeof budget, sent: Map<string, number>): void {
  const list = [...sent].map(([each, count]) => `${each}: ${count}`).join('\n')
  expect(total(sent, 'statement'), `a ${name} sends\n${list}`).toBeLessThanOrEqual(budget[name].statements)
  expect(total(sent, 'round trip'), `a ${name} sends\n${list}`).toBeLessThanOrEqual(budget[name].roundTrips)
  expect(total(sent, 'commit'), `a ${name} sends\n${list}`).toBeLessThanOrEqual(budget[name].commits)
}

test('a creation and a deletion stay within their budget of statements, round trips and commits', async () => {
  const { newVm, removeVm, succeeded } = resourcesOf(service)
  const ids: string[] = []
  expectWithin('creation', await leastOf(12, async () => ids.push(await newVm())))
  expectWithin('deletion', await leastOf(12, async () => succeeded(await removeVm(ids.pop()!))))
})

test('creations that come together cost less than half each of one that comes alone', async () => {
  const { newVm, removeVm, succeeded } = resourcesOf(service)
  const together = 8
  /** Of what as many would cost alone, the share that a whole round does. */
  const shareOfARound = async () => {
    const ids: string[] = []
    const create = async () => ids.push(await newVm())
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
  expectWithin('GET of a VM', await leastOf(12, () => service.ok('vmGet', { params })))
  expectWithin('GET of an operation', await leastOf(12, () => service.ok('operationGet', { params })))
})

test('what a transaction sends without waiting is one round trip, its beginning included', async () => {
  const { database } = service
  const sent = await leastOf(12, () =>
    database.transaction((tx) => Promise.all([1, 2, 3].map((n) => tx.query({ text: `SELECT ${n}` })))),
  )
  expect(total(sent, 'statement')).toBe(3)
  expect(total(sent, 'round trip')).toBe(2)
})

test.each([false, true])(
  'a statement that only the commit waits for takes its transaction back by its own error (others follow: %s)',
  async (isFollowed) => {
    const { database } = service
    const lease = (holder = uuid()) => ({ name: `taken back ${isFollowed}`, holder, ms: 60_000 })
    const failing = database.transaction(async (tx) => {
      await takeLease(tx, lease())
      await tx.withCommit(tx.query({ text: 'SELECT 1 / 0' }))
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
