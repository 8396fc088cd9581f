import { spawnSync } from 'node:child_process'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/**
 * promtool rejects the label `modelName`, because it is not in snake case. The name is that of NVIDIA's
 * exporter, and dashboards use it, so it stays.
 */
const isLabelOfDcgm = (line: string) => /^DCGM_\w+ label names should be written in 'snake_case'/.test(line)

const isPromtoolMissing = spawnSync('promtool', ['--version']).status !== 0
if (isPromtoolMissing) console.error('skipped: install prometheus to check the scrape with promtool')
/** The scrape of an earlier test. Scrapes are limited to 10 a minute. */
let scraped = ''

const start = '2026-11-20T10:00:00Z'
const at = (time: string) => `2026-11-20T${time}:00Z`

let service: TestService
let vmId: string
beforeAll(async () => {
  service = await startService(() => {}, start)
  vmId = await resourcesOf(service).newVm({ name: 'train-7', type: 'a100-80gb.2x' })
})
afterAll(() => service?.close())

/** Samples all VMs, as a worker does once a minute. */
const sample = () => service.server.reconciler.samples()

async function sampleEvery(minutes: number[], utilization: (minute: number) => number): Promise<void> {
  for (const minute of minutes) {
    await service.clock.freeze(new Date(Date.parse(start) + minute * 60_000).toISOString())
    await service.simulator().setMetrics(vmId, { gpu_utilization: utilization(minute), ssh_sessions: 1 })
    await sample()
  }
}

const utilization = async (query: object) => {
  const { items, step_seconds } = await service.ok('vmMetrics', {
    params: { vm_id: vmId },
    query: { names: 'DCGM_FI_DEV_GPU_UTIL', ...query },
  })
  return {
    step_seconds,
    points: items[0]?.points.map(([time, value]) => [time - Date.parse(start) / 1000, value]),
  }
}

test('a VM shows one point a minute for each metric and GPU, and null where there is no sample', async () => {
  await sampleEvery([0, 1, 3], (minute) => minute * 10)
  // A second sample of the same minute changes nothing.
  await service.simulator().setMetrics(vmId, { gpu_utilization: 99 })
  await sample()
  const { items, step_seconds } = await service.ok('vmMetrics', {
    params: { vm_id: vmId },
    query: { start: at('10:00'), end: at('10:03') },
  })
  expect(step_seconds).toBe(60)
  expect(items.filter(({ labels }) => labels.gpu === undefined)).toHaveLength(7)
  const loads = items.filter(({ name }) => name === 'DCGM_FI_DEV_GPU_UTIL')
  expect(loads.map(({ labels }) => labels.gpu)).toEqual(['0', '1'])
  expect(loads[0]).toMatchObject({
    unit: 'percent',
    labels: { vm_id: vmId, Hostname: 'train-7', modelName: 'NVIDIA A100 80GB PCIe' },
  })
  const seconds = Date.parse(start) / 1000
  expect(loads[1]!.points).toEqual([
    [seconds, 0],
    [seconds + 60, 10],
    [seconds + 120, null],
    [seconds + 180, 30],
  ])
})

test('a larger step has the mean of a gauge and the highest value of a counter', async () => {
  expect(await utilization({ start: at('10:00'), end: at('10:03'), step: 300 })).toEqual({
    step_seconds: 300,
    points: [[0, 13.333]],
  })
  const cpu = { names: 'slipway_vm_cpu_seconds_total', start: at('10:00'), end: at('10:03') }
  const read = async (step: number) =>
    (await service.ok('vmMetrics', { params: { vm_id: vmId }, query: { ...cpu, step } })).items[0]!.points
  expect((await read(300))[0]![1]).toBe((await read(60)).at(-1)![1])
})

test('samples of complete hours are packed and read as before, at both resolutions', async () => {
  const fine = await utilization({ start: at('10:00'), end: at('10:03') })
  const coarse = await utilization({ start: at('10:00'), end: at('10:03'), step: 300 })
  await service.clock.freeze(at('12:30'))
  await sample()
  const kept = await service.sql<{ at: Date }>('SELECT at FROM vm_samples')
  expect(kept.map((row) => row.at.toISOString())).toEqual(['2026-11-20T12:30:00.000Z'])
  expect(await service.sql('SELECT step FROM vm_sample_chunks ORDER BY step')).toEqual([
    { step: 60 },
    { step: 300 },
  ])
  expect(await utilization({ start: at('10:00'), end: at('10:03') })).toEqual(fine)
  expect(await utilization({ start: at('10:00'), end: at('10:03'), step: 300 })).toEqual(coarse)
})

test('samples per minute are kept for a day, and samples per five minutes for 15 days', async () => {
  const stepsAfter = async (hours: number) => {
    await service.clock.freeze(new Date(Date.parse(start) + hours * 3_600_000).toISOString())
    await service.server.reconciler.prune()
    // Without the sample of 12:30, which a periodic task may pack at any time.
    const found = await service.sql<{ step: number }>(
      'SELECT step FROM vm_sample_chunks WHERE hour = $1 ORDER BY step',
      [at('10:00')],
    )
    return found.map(({ step }) => step)
  }
  expect(await stepsAfter(24.5)).toEqual([60, 300])
  expect(await stepsAfter(25.5)).toEqual([300])
  // The default step for an old range is the one for which samples are kept.
  expect(await utilization({ start: at('10:00'), end: at('10:03') })).toMatchObject({ step_seconds: 300 })
  expect(await stepsAfter(360.5)).toEqual([300])
  expect(await stepsAfter(361.5)).toEqual([])
})

test('a range is refused if it is reversed, has too many points, or names an unknown metric', async () => {
  const refused = async (query: object, field: string) => {
    const { status, body } = await service.call('vmMetrics', {
      params: { vm_id: vmId },
      query: query as never,
    })
    expect({ status, text: JSON.stringify(body) }).toMatchObject({
      status: 400,
      text: expect.stringContaining(field),
    })
  }
  await refused({ start: at('11:00'), end: at('10:00') }, 'start')
  await refused({ start: '2026-01-01T00:00:00Z', end: at('10:00'), step: 60 }, '11000')
  await refused({ names: 'gpu_load' }, 'names')
  await refused({ step: 59 }, 'step')
  const none = await service.call('projectMetrics', { query: { vm_ids: '' } })
  expect(none.status).toBe(400)
})

test('the metrics of a VM are visible in its project only', async () => {
  const [other] = await service.sql<{ id: string }>('SELECT gen_random_uuid() AS id')
  expect((await service.call('vmMetrics', { params: { vm_id: other!.id } })).status).toBe(404)
  const { items } = await service.ok('projectMetrics', { query: { vm_ids: `${vmId},${other!.id}` } })
  expect(new Set(items.map(({ labels }) => labels.vm_id))).toEqual(new Set())
})

test('an engine cannot store samples of VMs that the location does not have', async () => {
  await service.sql(`UPDATE vms SET location = 'us-west1-a' WHERE id = $1`, [vmId])
  await service.clock.advance('5 minutes')
  await sample()
  expect(
    await service.sql('SELECT FROM vm_samples WHERE at > slipway_now() - $1::interval', ['2 minutes']),
  ).toEqual([])
  await service.sql(`UPDATE vms SET location = 'us-east1-a' WHERE id = $1`, [vmId])
})

const scrape = (accept = '*/*') =>
  service.request('GET', `/v0.1/projects/${service.credentials.project_id}/metrics/scrape`, {
    headers: { accept },
  })

test('a scrape has the latest values under the names of NVIDIA’s exporter, at most 10 times a minute', async () => {
  await service.simulator().setMetrics(vmId, { gpu_utilization: 42, ssh_sessions: 2 })
  await service.clock.advance('1 minute')
  await sample()
  const { body, headers } = await scrape()
  const text = String(body)
  expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  expect(text).toMatch(
    /^DCGM_FI_DEV_GPU_UTIL\{gpu="1",UUID="GPU-[^"]+",modelName="NVIDIA A100 80GB PCIe",Hostname="train-7",vm_id="[^"]+"\} 42$/m,
  )
  expect(text).toMatch(/^slipway_vm_ssh_sessions\{[^}]+\} 2$/m)
  expect(text).toMatch(/^slipway_vm_state\{[^}]*state="STATE_RUNNING"\} 1$/m)
  const open = await scrape('application/openmetrics-text; version=1.0.0')
  expect(open.headers.get('content-type')).toMatch(/^application\/openmetrics-text/)
  expect(String(open.body)).toMatch(/# TYPE slipway_vm_cpu_seconds counter\n[\s\S]*# EOF\n$/)
  scraped = text
  for (let count = 3; count <= 10; count++) expect((await scrape()).status).toBe(200)
  expect((await scrape()).status).toBe(429)
})

test.skipIf(isPromtoolMissing)('promtool accepts a scrape, except for the name of one label', () => {
  const { stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: scraped, encoding: 'utf8' })
  expect(scraped).toContain('DCGM_FI_DEV_GPU_UTIL')
  const findings = `${stdout}${stderr}`.split('\n').filter(Boolean)
  expect(findings.filter((line) => !isLabelOfDcgm(line))).toEqual([])
})

test('a VM whose guest is silent has no GPU values, and one that is stopped has no sample', async () => {
  await service.simulator().setMetrics(vmId, { silent: true })
  await service.clock.advance('1 hour')
  await sample()
  const names = async () =>
    (
      await service.ok('vmMetrics', {
        params: { vm_id: vmId },
        query: { start: (await now()).toISOString() },
      })
    ).items.map(({ name }) => name)
  const now = async () => (await service.sql<{ now: Date }>('SELECT slipway_now() AS now'))[0]!.now
  const shown = await names()
  expect(shown).toContain('slipway_vm_memory_bytes')
  expect(shown.filter((name) => /^DCGM|ssh/.test(name))).toEqual([])
  const resources = resourcesOf(service)
  await resources.succeeded(await resources.act(vmId, { action: 'STOP' }))
  await service.clock.advance('1 hour')
  await sample()
  expect(await names()).toEqual([])
})
