import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '@slipway/testing/eventually.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

const windowS = 15
/** One inspection of each location (every 30 seconds), one run of each other task, and reading the count. */
const otherCommits = 30

let service: TestService
beforeAll(async () => {
  service = await startService()
  // Waits until every scheduled task has run once.
  const tasks = ['retention', 'usage roll-up', 'card expiry', 'budgets', 'meter reports']
  const turns = [...service.config.locations.map(({ name }) => `reports ${name}`), ...tasks]
  const leasedTurns = () => service.sql('SELECT FROM leases WHERE name = ANY ($1)', [turns])
  await eventually(async () => (await leasedTurns()).length === turns.length)
})
afterAll(() => service?.close())

/**
 * Returns the number of inspections. It also releases the leases of the locations, so that an inspection can start when
 * it is due.
 */
async function inspections(): Promise<number> {
  await service.sql(
    `UPDATE leases SET until = slipway_now() - interval '1 second' WHERE name LIKE 'reports %'`,
  )
  const rows = await service.sql<{ count: number }>('SELECT sum(inspections)::int AS count FROM locations')
  return rows[0]!.count
}

/** Waits until the locations are idle: no inspection is in progress and no work is due. */
async function idleInspections(): Promise<number> {
  let before = await inspections()
  await eventually(async () => {
    const last = before
    await delay(5_000)
    before = await inspections()
    return before === last
  })
  return before
}

async function commits(): Promise<number> {
  const { body } = await service.request('GET', '/metrics')
  return Number(/^slipway_database_commits_total (\d+)$/m.exec(String(body))![1])
}

test('an idle server makes at most two commits a second', async () => {
  const before = await commits()
  await delay(windowS * 1_000)
  const newCommits = (await commits()) - before
  // The server looks for due work, and does nothing else in between.
  expect(newCommits).toBeGreaterThan(2)
  expect(newCommits).toBeLessThanOrEqual(2 * windowS + otherCommits)
}, 60_000)

test.each([
  [
    'a GPU that waits for its reset',
    // The engine reported the GPU as reset before its quarantine began, so the GPU stays quarantined.
    `UPDATE gpus SET state = 'quarantined', quarantined_at = slipway_now() + interval '1 hour'
     WHERE id = (SELECT id FROM gpus LIMIT 1)`,
    `UPDATE gpus SET state = 'free', quarantined_at = NULL WHERE state = 'quarantined'`,
  ],
  [
    'a host that is down',
    `UPDATE hosts SET state = 'down' WHERE id = (SELECT id FROM hosts LIMIT 1)`,
    `UPDATE hosts SET state = 'up' WHERE state = 'down'`,
  ],
])(
  '%s makes the simulated locations active again',
  async (_name, begin, end) => {
    // The clock is frozen so that nothing becomes due.
    await service.clock.freeze()
    const before = await idleInspections()
    await service.sql(begin)
    await eventually(async () => (await inspections()) > before)
    await service.sql(end)
    await service.clock.reset()
  },
  120_000,
)
