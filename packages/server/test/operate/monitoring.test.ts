import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { root } from '@slipway/testing/root.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readLocations } from '../../src/config/locations.ts'

const alertFile = join(root, 'deploy/prometheus/alerts.yml')
const alerts = readFileSync(alertFile, 'utf8')
const alertTests = readFileSync(join(root, 'deploy/prometheus/alerts.test.yml'), 'utf8')
const dashboard = readFileSync(join(root, 'deploy/grafana/slipway.json'), 'utf8')
const page = readFileSync(join(root, 'docs/operate/running.md'), 'utf8')
const valuesOf = (text: string, key: string) =>
  Array.from(text.matchAll(new RegExp(`^[ -]*${key}: (.*)$`, 'gm')), ([, value]) => value!)
const alertNames = valuesOf(alerts, 'alert')

const isMissing = spawnSync('promtool', ['--version']).status !== 0
if (isMissing) console.error('skipped: install prometheus to check the metrics and alert rules with promtool')
const promtool = (args: string[], input = '') => {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  return { status, output: `${stdout}${stderr}` }
}

let service: TestService
beforeAll(async () => {
  const fixture = (name: string) => join(import.meta.dirname, '../support/fixtures/tls', name)
  service = await startService((config) => {
    const incus = {
      urls: ['https://127.0.0.1:9'],
      client_cert_file: fixture('first.crt'),
      client_key_file: fixture('first.key'),
    }
    config.locations.push(...readLocations([{ name: 'away-a', engine: 'incus', incus }]))
  })
})
afterAll(() => service?.close())

async function metrics(): Promise<string> {
  return String((await service.request('GET', '/metrics', { token: null })).body)
}

const sumOf = (text: string, series: RegExp) =>
  Array.from(text.matchAll(new RegExp(`^${series.source} (\\S+)$`, 'gm')), ([, value]) =>
    Number(value),
  ).reduce((sum, value) => sum + value, 0)

test('the metrics count hosts, GPUs and VMs by state', async () => {
  const resources = resourcesOf(service)
  const free = /slipway_gpus\{location="us-east1-a",model="A100 80GB PCIe",state="free"\}/
  const before = await metrics()
  await resources.newVm({ type: 'a100-80gb.2x' })
  await service.sql(
    `UPDATE gpus SET state = 'quarantined', quarantined_at = now(), is_held_back = true
     WHERE id = (SELECT id FROM gpus WHERE state = 'free' AND model = 'A40 48GB PCIe' LIMIT 1)`,
  )
  await service.sql(
    `UPDATE hosts SET is_schedulable = false WHERE id = (SELECT id FROM hosts WHERE location = 'us-west1-a' LIMIT 1)`,
  )
  const text = await metrics()
  expect(sumOf(before, free) - sumOf(text, free)).toBe(2)
  expect(text).toContain('slipway_gpus{location="us-east1-a",model="A100 80GB PCIe",state="claimed"} 2')
  expect(sumOf(text, /slipway_gpus\{.*state="held_back"\}/)).toBe(1)
  expect(text).toContain('slipway_vms{location="us-east1-a",state="STATE_RUNNING"} 1')
  expect(text).toContain('slipway_hosts{location="us-west1-a",state="closed"} 1')
  expect(sumOf(text, /slipway_hosts\{location="us-east1-a",state="up"\}/)).toBe(15)
})

test('the metrics count calls to engines, and failures of the engine that cannot be reached', async () => {
  await service.server.reconciler.once()
  const text = await metrics()
  expect(sumOf(text, /slipway_engine_calls_total\{location="us-east1-a",method="ensureVm"\}/)).toBe(1)
  expect(
    sumOf(text, /slipway_engine_calls_total\{location="us-east1-a",method="inventory"\}/),
  ).toBeGreaterThan(0)
  expect(
    sumOf(text, /slipway_engine_call_failures_total\{location="away-a",kind="unavailable"\}/),
  ).toBeGreaterThan(0)
  expect(text).not.toMatch(/failures_total\{location="us-east1-a"/)
  expect(text).toContain('slipway_engine_silence_seconds{location="away-a",engine="incus"} 0')
})

test('the metrics show what waits, for how long, and when certificates expire', async () => {
  await service.clock.freeze()
  await service.sql(
    `INSERT INTO operation_queue (operation_id, project_id, resource_id, is_deletion, location, run_at)
     SELECT gen_random_uuid(), id, gen_random_uuid(), false, 'away-a', slipway_now() - interval '90 seconds'
     FROM projects LIMIT 1`,
  )
  await service.sql(`INSERT INTO usage_days_closed (day) SELECT (slipway_now() AT TIME ZONE 'UTC')::date - 3`)
  const text = await metrics()
  expect(sumOf(text, /slipway_operations_waiting\{location="away-a"\}/)).toBe(1)
  expect(sumOf(text, /slipway_operations_waiting_seconds\{location="away-a"\}/)).toBeCloseTo(90, 0)
  // Two days are open, of which the older one ended more than a day ago.
  expect(sumOf(text, /slipway_billing_lag_seconds/)).toBeGreaterThan(86_400 - 600)
  const expiry = sumOf(
    text,
    /slipway_certificate_expiry_timestamp_seconds\{use="incus_client",location="away-a"\}/,
  )
  expect(new Date(expiry * 1000).getUTCFullYear()).toBe(2126)
  await service.sql(
    'DELETE FROM operation_queue WHERE resource_id NOT IN (SELECT resource_id FROM operations)',
  )
  await service.clock.thaw()
})

test('the metrics count held and suspect GPUs, webhook deliveries, and capacity requests with their age', async () => {
  const change = (set: string, model: string) =>
    service.sql(
      `UPDATE gpus SET ${set} WHERE id = (
         SELECT g.id FROM gpus g JOIN hosts h ON h.id = g.host_id
         WHERE g.state = 'free' AND g.model = $1 AND h.location = 'us-east1-a' LIMIT 1)`,
      [model],
    )
  // The hold is for a request: the reconciler frees GPUs held for operations that are not in progress.
  await change(`state = 'held', held_for = gen_random_uuid(), held_kind = 'request'`, 'A40 48GB PCIe')
  await change('suspect_since = slipway_now()', 'A100 80GB PCIe')
  await service.sql(
    `WITH hook AS (
       INSERT INTO webhooks (id, project_id, url, event_types, state, since_position)
       SELECT gen_random_uuid(), id, 'https://example.com', '{disk.deleted}', 'paused', 0 FROM projects LIMIT 1 RETURNING id)
     INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id)
     SELECT gen_random_uuid(), hook.id, gen_random_uuid(), 'vm.running', n::text FROM hook, generate_series(1, 2) n`,
  )
  await service.sql(
    `UPDATE gpus SET state = 'quarantined', quarantined_at = slipway_now(), is_held_back = true
     WHERE state = 'free' AND model = 'A100 40GB PCIe'`,
  )
  await service.ok('capacityRequestCreate', { body: { vm: vmBody() } as never })
  await service.sql(`UPDATE capacity_requests SET created_at = created_at - interval '2 hours'`)
  const text = await metrics()
  const here = 'location="us-east1-a"'
  expect(text).toContain(`slipway_gpus{${here},model="A40 48GB PCIe",state="held"} 1`)
  expect(text).toContain(`slipway_gpus_suspect{${here},model="A100 80GB PCIe"} 1`)
  expect(text).toContain('slipway_webhook_deliveries_pending 2')
  expect(text).toContain(`slipway_capacity_requests_waiting{${here},family="a100"} 1`)
  const age = sumOf(text, /slipway_capacity_requests_waiting_seconds\{location="us-east1-a",family="a100"\}/)
  expect(age).toBeGreaterThanOrEqual(7_200)
  expect(age).toBeLessThan(7_800)
})

test('the labels of the service are those of hardware, states and routes, and contain no id', async () => {
  const text = await metrics()
  expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/)
  const lines = text.split('\n').filter((line) => line.startsWith('slipway_'))
  const labels = lines.flatMap((line) => Array.from(line.matchAll(/[{,](\w+)="/g), ([, label]) => label!))
  const known = [
    'engine',
    'family',
    'kind',
    'le',
    'location',
    'method',
    'model',
    'route',
    'state',
    'status',
    'use',
  ]
  expect([...new Set(labels)].filter((label) => !known.includes(label))).toEqual([])
})

test('every metric in the alert rules and the dashboard exists', async () => {
  const text = await metrics()
  const used = new Set(`${alerts}${dashboard}`.match(/\b(slipway|process|nodejs)_\w+\b/g))
  const known = new Set(Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name!))
  const unknown = [...used].filter((name) => !known.has(name.replace(/_bucket$/, '')))
  expect(used.size).toBeGreaterThan(15)
  expect(unknown).toEqual([])
})

test('every alert has a test and a paragraph, which it links to', () => {
  expect(alertNames.length).toBeGreaterThan(10)
  const headings = valuesOf(page.replaceAll('### ', 'heading: '), 'heading')
  expect(headings).toEqual(alertNames)
  const anchors = valuesOf(alerts, 'runbook_url').map((url) => url.split('docs/operate/running.md#')[1])
  expect(anchors).toEqual(alertNames.map((name) => name.toLowerCase()))
  expect(new Set(valuesOf(alertTests, 'alertname'))).toEqual(new Set(alertNames))
})

test.skipIf(isMissing)(
  'promtool accepts the metrics and the alert rules, and the alerts fire as tested',
  async () => {
    const accepted = { status: 0, output: expect.any(String) }
    expect(promtool(['check', 'rules', alertFile])).toEqual(accepted)
    expect(promtool(['test', 'rules', join(root, 'deploy/prometheus/alerts.test.yml')])).toEqual(accepted)
    expect(promtool(['check', 'metrics'], await metrics())).toEqual({ status: 0, output: '' })
  },
)
