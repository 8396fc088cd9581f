import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/**
 * What one of each may ask of the database, in statements, round trips and commits. A change that needs more says here
 * why; one that needs less lowers the number.
 */
const budget = {
  creation: { statements: 26, roundTrips: 29, commits: 11 },
  deletion: { statements: 29, roundTrips: 32, commits: 12 },
  'GET of a VM': { statements: 1.2, roundTrips: 1.2, commits: 1.2 },
  'GET of an operation': { statements: 1.2, roundTrips: 1.2, commits: 1.2 },
}
type Counts = { statements: number; roundTrips: number; commits: number }

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const counts = (): Counts => service.server.services.database.counts

/** The least of many rounds: what else the process does now and then adds to some of them, but not to all. */
async function leastOf(each: number, rounds: number, work: () => Promise<unknown>): Promise<Counts> {
  const least: Counts = { statements: Infinity, roundTrips: Infinity, commits: Infinity }
  for (let round = 0; round < rounds; round++) {
    const before = { ...counts() }
    for (let n = 0; n < each; n++) await work()
    const after = { ...counts() }
    for (const name of Object.keys(least) as (keyof Counts)[])
      least[name] = Math.min(least[name], (after[name] - before[name]) / each)
  }
  return least
}

function expectWithin(name: keyof typeof budget, spent: Counts): void {
  for (const [what, most] of Object.entries(budget[name]) as [keyof Counts, number][])
    expect(spent[what], `${what} of a ${name}: ${JSON.stringify(spent)}`).toBeLessThanOrEqual(most)
}

test('a creation and a deletion stay within their budget of statements and commits', async () => {
  const { newVm, removeVm, succeeded } = resourcesOf(service)
  const ids: string[] = []
  expectWithin('creation', await leastOf(1, 20, async () => ids.push(await newVm())))
  expectWithin('deletion', await leastOf(1, 20, async () => succeeded(await removeVm(ids.pop()!))))
})

test('a GET of a record takes one statement', async () => {
  const { createVm, ended } = resourcesOf(service)
  const begun = await createVm()
  await ended(begun)
  const { operation_id, metadata } = begun.operation
  const params = { vm_id: metadata.id, operation_id }
  expectWithin('GET of a VM', await leastOf(20, 4, () => service.ok('vmGet', { params })))
  expectWithin('GET of an operation', await leastOf(20, 4, () => service.ok('operationGet', { params })))
})

test('metrics show what the process has asked of the database', async () => {
  const before = counts().statements
  const text = await (await fetch(`${service.url}/metrics`)).text()
  const total = Number(/^slipway_database_statements_total (\d+)$/m.exec(text)![1])
  expect(total).toBeGreaterThanOrEqual(before)
  for (const name of ['round_trips', 'commits']) expect(text).toContain(`slipway_database_${name}_total `)
})
