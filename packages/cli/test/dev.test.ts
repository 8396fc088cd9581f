import { startInProcessServer } from '@slipway/testing/in-process-server.ts'
import { beforeEach, expect, test } from 'vitest'
import { goldenFile, transcript } from './support/golden.ts'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer(undefined, ['--dev'])
const { slipway, json, createVm } = cli

beforeEach(async () => {
  expect(await slipway('dev', 'reset', '--yes')).toMatchObject({ code: 0 })
})

test('the clock can be shown, frozen, moved, accelerated and reset', async () => {
  const frozen = await json('dev', 'clock', 'freeze')
  expect(await json('dev', 'clock', 'show')).toEqual(frozen)
  const moved = await json('dev', 'clock', 'advance', '31d')
  expect(Date.parse(moved.now) - Date.parse(frozen.now)).toBe(31 * 86_400_000)
  const day = new Date(Date.parse(moved.now) + 86_400_000).toISOString().slice(0, 10)
  expect(await json('dev', 'clock', 'advance', '--to', day)).toMatchObject({
    mode: 'frozen',
    now: `${day}T00:00:00.000Z`,
  })
  expect(await json('dev', 'clock', 'set', '--rate', '60')).toMatchObject({ mode: 'scaled', rate: 60 })
  expect(await json('dev', 'clock', 'real')).toMatchObject({ mode: 'real', rate: 1 })
  for (const words of [[], ['1d', '--to', '2099-01-01'], ['soon'], ['--to', 'soon']])
    expect(await slipway('dev', 'clock', 'advance', ...words)).toMatchObject({ code: 2 })
})

test('faults can be created, take effect, and can be listed and deleted', async () => {
  const fault = ['dev', 'fault', 'create', 'vm-create', '--step', 'boot', '--effect', 'fail']
  const { id } = await json(...fault, '--name', 'train-*', '--times', '1', '--delay', '1s')
  const where = ['--type', 'a40.1x', '--location', 'us-east1-a', '--ssh-key', cli.publicKey]
  const failed = await slipway('vm', 'create', 'train-1', ...where)
  expect(failed.stderr).toContain('This failure was requested with /_dev/faults.')
  expect(await json('dev', 'fault', 'list')).toMatchObject([{ id, matched: 1, applied: 1, delay_ms: 1000 }])
  await slipway('dev', 'fault', 'delete', id)
  expect(await json('dev', 'fault', 'list')).toEqual([])
  await slipway(...fault)
  await slipway('dev', 'fault', 'delete', '--all')
  expect(await json('dev', 'fault', 'list')).toEqual([])
  expect(await slipway('dev', 'fault', 'delete')).toMatchObject({ code: 2 })
  expect((await slipway(...fault.slice(0, -1), 'fial')).stderr).toContain('Did you mean fail?')
})

test('the guest of a VM reports the metrics that dev vm metrics sets', async () => {
  await createVm('busy')
  expect(await slipway('dev', 'vm', 'metrics', 'busy', '--gpu-utilization', '42')).toMatchObject({ code: 0 })
  const [series] = await json('vm', 'metrics', 'busy', '--metric', 'DCGM_FI_DEV_GPU_UTIL')
  expect(series).toMatchObject({ unit: 'percent', labels: { gpu: '0', Hostname: 'busy' } })
  expect(series.points.at(-1)[1]).toBe(42)
  const table = (await slipway('vm', 'metrics', 'busy')).stdout
  expect(table).toMatch(/^NAME +GPU +LATEST +LOWEST +HIGHEST +UNIT/)
  expect(table).toMatch(/DCGM_FI_DEV_GPU_UTIL +0 +42 +42 +42 +percent/)
  expect(await slipway('dev', 'vm', 'metrics', 'busy')).toMatchObject({ code: 2 })
  const changed = await json('vm', 'idle', 'busy', '--below', '5', '--for', '1h')
  expect(changed.idle_policy).toEqual({
    min_gpu_utilization: 5,
    window_seconds: 3600,
    action: 'stop',
    ignore_ssh: false,
  })
  expect((await json('vm', 'idle', 'busy', '--off')).idle_policy).toBeNull()
  expect(await slipway('vm', 'idle', 'busy')).toMatchObject({ code: 2 })
})

test('the guest of a VM repeats what is typed at its console', async () => {
  await createVm('talks')
  expect(await slipway('dev', 'vm', 'console', 'talks', 'nvidia-smi')).toMatchObject({ code: 0 })
  expect((await slipway('vm', 'log', 'talks')).stdout).toContain('simulated: nvidia-smi')
})

test('a GPU error changes the health of its VM, and vm replace makes the VM healthy again', async () => {
  await createVm('sick')
  expect(await slipway('dev', 'vm', 'xid', 'sick', '79', '--source', 'host')).toMatchObject({ code: 0 })
  const { stdout } = await slipway('vm', 'health', 'sick')
  expect(stdout).toMatch(/^GPU +CODE +SOURCE +ACTION +AT +MESSAGE\n +0 +xid_79 +host +REPLACE /)
  const [gpu] = (await json('admin', 'gpu', 'list')).filter(({ suspect }: { suspect: boolean }) => suspect)
  expect(await json('admin', 'gpu', 'faults', gpu.id)).toMatchObject([{ xid: 79, source: 'host' }])
  expect(await slipway('admin', 'gpu', 'check', gpu.id)).toMatchObject({
    stderr: expect.stringContaining('is claimed by the VM'),
  })
  expect(await json('vm', 'replace', 'sick')).toMatchObject({ health: { status: 'healthy' } })
  expect((await json('vm', 'health', 'sick', '--on-fault', 'replace')).on_gpu_fault).toBe('replace')
})

test('a type can be out of stock, a host and a VM can fail, and a payment can be declined', async () => {
  await slipway('dev', 'capacity', 'a40.1x', 'us-east1-a', '1')
  await createVm('last')
  const next = ['vm', 'create', 'next', '--type', 'a40.1x', '--ssh-key', cli.publicKey, '--location']
  expect(await slipway(...next, 'us-east1-a')).toMatchObject({ code: 4 })

  expect(await slipway('dev', 'vm', 'crash', 'last')).toMatchObject({ code: 0 })
  expect((await json('vm', 'show', 'last')).state).toBe('STATE_CRASHED')

  expect(await slipway('dev', 'host', 'fail', 'a100-1')).toMatchObject({ code: 2 })
  const [{ id }] = await json('admin', 'host', 'list', '--location', 'us-east1-a')
  const host = async () => (await json('admin', 'host', 'show', id)).state
  await slipway('dev', 'host', 'fail', id)
  await slipway('dev', 'clock', 'advance', '2m')
  expect(await host()).toBe('down')
  await slipway('dev', 'host', 'recover', id)
  expect(await host()).toBe('up')

  expect((await json('dev', 'payments', 'declined')).state).toBe('declined')
  const refused = await slipway(...next, 'eu-north1-a')
  expect(refused).toMatchObject({ code: 5 })
  expect((await slipway('dev', 'payments', 'lost')).stderr).toContain('Supported: ')
})

test('VMs take the requested time to boot', async () => {
  await slipway('dev', 'clock', 'freeze')
  expect(await json('dev', 'transitions', '90s')).toEqual({ mode: 'seconds', n: 90 })
  await createVm('slow', '--no-wait')
  expect((await json('vm', 'show', 'slow')).state).toBe('STATE_CREATING')
  await slipway('dev', 'clock', 'advance', '2m')
  expect((await json('vm', 'show', 'slow')).state).toBe('STATE_RUNNING')
  expect(await json('dev', 'transitions', '5')).toEqual({ mode: 'seconds', n: 5 })
  expect(await json('dev', 'transitions', 'immediate')).toEqual({ mode: 'immediate' })
})

test('the output of the dev commands has the expected format', async () => {
  await slipway('vm', 'show', 'none')
  const lines = [
    ['dev', 'clock', 'freeze'],
    ['dev', 'fault', 'create', 'vmCreate', '--effect', 'reject', '--code', 'out_of_stock'],
    ['dev', 'fault', 'list'],
    ['dev', 'capacity', 'a40.1x', 'us-east1-a', '2'],
    ['dev', 'requests', '-o', 'columns=method,status,route'],
    ['dev', 'reset'],
    ['dev', 'reset', '--yes'],
  ]
  const texts: string[] = []
  for (const words of lines) texts.push(transcript(words, await slipway(...words)))
  await expect(`${texts.join('\n\n')}\n`).toMatchFileSnapshot(goldenFile('dev.txt'))
})

test('a service without --dev is recognized, also with only an operator key', async () => {
  const plain = await startInProcessServer()
  const env = { SLIPWAY_API_URL: plain.api_url, SLIPWAY_OPERATOR_KEY: plain.operator_key }
  for (const words of ['clock show', 'fault list', 'capacity a40.1x us-east1-a 0', 'reset --yes']) {
    const run = await cli.runAs(['dev', ...words.split(' ')], { env })
    expect(run).toMatchObject({ code: 3, stdout: '' })
    expect(run.stderr).toContain('This service was not started with --dev.')
  }
  await plain.close()
})
