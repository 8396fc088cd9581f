import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let resources: ReturnType<typeof resourcesOf>

beforeAll(async () => {
  service = await startService()
  resources = resourcesOf(service)
  await settle(service)
})
afterAll(() => service.close())

/** Blocks the step that operations share, until all of them have reached it. */
async function gather(
  query: string,
  count: number,
  begin: () => Promise<unknown>,
  meanwhile = async () => {},
) {
  const blocker = new pg.Client(service.databaseUrl)
  await blocker.connect()
  await blocker.query('BEGIN')
  await blocker.query('LOCK TABLE usage_intervals IN ACCESS EXCLUSIVE MODE')
  await begin()
  await eventually(async () => {
    const waiting = await service.sql(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`,
      [`%${query}%`],
    )
    const [{ running }] = (await service.sql<{ running: number }>(
      `SELECT count(*)::int AS running FROM simulated_vms WHERE power = 'on' AND ready_at <= slipway_now()`,
    )) as [{ running: number }]
    return waiting.length === 1 && running >= count
  })
  await meanwhile()
  await blocker.query('COMMIT')
  await blocker.end()
}

test('operations that finish in one batch all succeed, except one that was cancelled in the meantime', async () => {
  const before = await service.sql('SELECT FROM vms')
  let accepted: Awaited<ReturnType<typeof resources.createVm>>[] = []
  await gather(
    'UPDATE vms v SET state',
    before.length + 6,
    async () => {
      accepted = await Promise.all(Array.from({ length: 6 }, () => resources.createVm()))
    },
    async () => {
      // Acts like a deletion of the last VM at this moment, without the locks that it would wait for.
      await service.sql('UPDATE operation_queue SET is_cancelled = true WHERE operation_id = $1', [
        accepted[5]!.operation.operation_id,
      ])
    },
  )
  for (const creation of accepted.slice(0, 5)) await resources.succeeded(creation)
  expect(await service.ended(accepted[5]!.operation.operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'cancelled' },
  })
  const left = accepted[5]!.operation.metadata.id
  await resources.succeeded(await resources.removeVm(left))
  await settle(service)
  await checkInvariants(service)
})

test('deletions that finish in one batch release everything that each VM held', async () => {
  const ids = (await service.ok('vmList')).items.map(({ id }) => id)
  expect(ids.length).toBeGreaterThan(3)
  const deletions = await Promise.all(ids.map((id) => resources.removeVm(id)))
  for (const deletion of deletions) await resources.succeeded(deletion)
  const { items } = await service.ok('quotaList')
  expect(items.filter(({ name }) => name === 'vms')).toMatchObject([{ used: 0 }])
  await settle(service)
  await checkInvariants(service)
})
