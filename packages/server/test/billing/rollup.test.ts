import { addOrganization } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** A service with 1,100 projects of 22 organizations. Each had a VM and a disk on the last two days of a month. */
let service: TestService
beforeAll(async () => {
  service = await startService((config) => {
    config.server.role = 'api'
  })
  await service.clock.freeze('2027-01-01T00:06:00Z')
  await service.sql(`UPDATE prices SET valid_from = '2026-01-01'`)
  for (let n = 0; n < 22; n++) await addOrganization(service.database, `Lab ${n}`)
  await service.sql(
    `INSERT INTO projects (id, organization_id, name)
     SELECT gen_random_uuid(), o.id, 'p' || n FROM organizations o, generate_series(1, 50) n WHERE o.name LIKE 'Lab %'`,
  )
  await service.sql(
    `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
     SELECT id, 'us-east1-a', m.type, gen_random_uuid(), m.product, 1 + get_byte(uuid_send(id), 0) % m.most,
            tstzrange('2026-12-30T18:00Z', '2026-12-31T06:00Z')
     FROM projects, (VALUES ('vm', 'a100.1x', 1), ('disk', 'persistent-ssd', 100)) m (type, product, most)
     WHERE name LIKE 'p%'`,
  )
})
afterAll(() => service.close())

const readResults = async () => ({
  usage: await service.sql('SELECT * FROM usage_days ORDER BY project_id, day, product_name'),
  invoices: await service.sql('SELECT id, organization_id, month, usd_cents FROM invoices ORDER BY id'),
  lines: await service.sql('SELECT * FROM invoice_lines ORDER BY invoice_id, project_id, product_name'),
})
const count = async (table: string) => {
  const [row] = await service.sql<{ n: number }>(`SELECT count(*)::integer AS n FROM ${table}`)
  return row!.n
}
/** Makes writing a matching row fail, which interrupts the roll-up as the end of its process would. */
const breakAt = async (table: string, condition: string) => {
  await service.sql(
    `CREATE OR REPLACE FUNCTION break_down() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$`,
  )
  await service.sql(
    `CREATE TRIGGER broken BEFORE INSERT ON ${table} FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION break_down()`,
  )
}
const repair = (table: string) => service.sql(`DROP TRIGGER broken ON ${table}`)

test('a roll-up that is interrupted anywhere resumes there, and writes the same rows as an uninterrupted one', async () => {
  await service.server.billing.once()
  const whole = await readResults()
  expect(whole.usage).toHaveLength(4400)
  expect(whole.invoices).toHaveLength(22)
  expect(await count('usage_rollups')).toBe(0)
  await service.sql('TRUNCATE usage_days, usage_days_closed, invoices, invoice_lines')
  for (const table of ['events', 'events_pending'])
    await service.sql(`DELETE FROM ${table} WHERE type LIKE 'invoice.%'`)

  const projects = await service.sql<{ id: string }>(`SELECT id FROM projects ORDER BY id`)
  await breakAt('usage_days', `NEW.project_id = '${projects[600]!.id}' AND NEW.day = '2026-12-31'`)
  await service.server.billing.once()
  // The first of three shards of the second day is kept, but not visible yet.
  expect(await service.sql('SELECT day::text FROM usage_days_closed')).toEqual([{ day: '2026-12-30' }])
  const usage = await count('usage_days')
  expect(usage).toBeGreaterThan(2200)
  expect(usage).toBeLessThan(4400)
  await repair('usage_days')

  const broken = whole.invoices[9] as { organization_id: string }
  const before = whole.invoices.filter(
    (invoice) => (invoice as typeof broken).organization_id < broken.organization_id,
  )
  await breakAt('invoices', `NEW.organization_id = '${broken.organization_id}'`)
  await service.server.billing.once()
  await service.server.billing.once()
  expect(await count('usage_days')).toBe(4400)
  expect(await count('invoices')).toBe(before.length)
  await repair('invoices')

  const other = await service.another()
  await Promise.all([service.server, other, service.server].map(({ billing }) => billing.once()))
  expect(await readResults()).toEqual(whole)
  expect(await count('usage_rollups')).toBe(0)
  expect(await count(`events_written WHERE type = 'invoice.issued'`)).toBe(22)
  const warnings = service.logLines.filter((line) => line.includes('billing task failed'))
  expect(warnings.every((line) => line.includes('broken'))).toBe(true)
})
