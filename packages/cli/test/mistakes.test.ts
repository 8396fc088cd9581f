import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()
const { home, publicKey, slipway } = cli
const small = ['--type', 'a40.1x', '--location', 'us-east1-a']
beforeAll(() => cli.createVm('train-7'))

const privateKey = `-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
-----END OPENSSH PRIVATE KEY-----
`

test('a private key is rejected locally, and the public key next to it is used', async () => {
  const path = join(home, 'id_work')
  writeFileSync(path, privateKey)
  // The service is unreachable, which shows that nothing was sent.
  const refused = await slipway(
    'vm',
    'create',
    'x',
    ...small,
    '--ssh-key',
    path,
    '--api-url',
    'http://127.0.0.1:1',
  )
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toContain(
    `${path} is a private key. Use the public key; the private key must not leave this computer.`,
  )
  copyFileSync(publicKey, `${path}.pub`)
  const dry = await slipway('vm', 'create', 'x', ...small, '--ssh-key', path, '--dry-run')
  expect(dry).toMatchObject({ code: 0 })
  expect(dry.stdout).not.toContain('PRIVATE KEY')
  expect(dry.stdout).toContain('"ssh_public_key": "ssh-ed25519 ')
  expect(dry.stderr).toBe(`${path} is a private key and stays on this computer; using ${path}.pub.\n`)
})

test.each([
  [['vm', 'list', '--state', 'runing'], '--state cannot be “runing”.', 'Did you mean running?'],
  [['vm', 'list', '--state', 'running,of'], '--state cannot be “of”.', 'Supported: creating, running, '],
  [['vm', 'list', '--type', 'a40'], '--type cannot be “a40”.', 'a40.1x'],
  [
    ['vm', 'list', '--location', 'us-east1'],
    '--location must be one of us-east1-a, eu-north1-a',
    'us-east1-a?',
  ],
  [['vm', 'list', '-o', 'columns=name,stat'], 'Unknown column stat.', 'Supported: name, type, state, '],
  [
    ['vm', 'list', '--state', 'crashed', '-o', 'columns=name,nope'],
    'Unknown column nope.',
    'Supported: name, ',
  ],
  [['usage', '--month', '2020-01', '-o', 'columns=product,nope'], 'Unknown column nope.', 'quantity, unit, '],
  [['events', '--type', 'vm.crashed', '-o', 'columns=nope'], 'Unknown column nope.', 'position'],
  [['operation', 'list', '--state', 'failed', '-o', 'columns=nope'], 'Unknown column nope.', 'operation_id'],
  [['offers', '--max-price', '0.01', '-o', 'columns=nope'], 'Unknown column nope.', 'usd_per_hour'],
  [['admin', 'operation', 'list', '-o', 'columns=nope'], 'Unknown column nope.', 'is_stuck'],
  [['admin', 'gpu', 'list', '--state', 'quarantined', '-o', 'columns=nope'], 'Unknown column nope.', 'host'],
  [['vm', 'show', 'train-7', '-o', 'columns=stat'], 'Unknown column stat.', 'Supported: name, type, state, '],
  [['events', '--type', 'vm.runing'], '--type cannot be “vm.runing”.', 'Did you mean vm.running?'],
  [['events', '--type', 'cats'], '--type cannot be “cats”.', 'vm.…'],
  [['operation', 'list', '--state', 'runing'], '--state cannot be “runing”.', 'in_progress'],
  [['webhook', 'create', 'https://x.test', '--events', 'vm.up'], '--events cannot be “vm.up”.', 'vm.*'],
  [['firewall', 'create', 'x', '--protocol', 'tpc'], '--protocol cannot be “tpc”.', 'Did you mean tcp'],
  [
    ['vm', 'create', 'x', '--on-expiry', 'explode'],
    '--on-expiry cannot be “explode”.',
    'Supported: stop, delete',
  ],
])(
  'an unknown value is an error that lists the supported values: slipway %j',
  async (words, message, known) => {
    const { code, stdout, stderr } = await slipway(...words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`slipway: ${message}`)
    expect(stderr).toContain(known)
  },
)

test('an empty list accepts every column that a list with rows accepts', async () => {
  const empty = async (...words: string[]) => (await slipway(...words, '--no-header')).code
  expect(await empty('usage', '--month', '2020-01', '-o', 'columns=product,usd')).toBe(0)
  expect(await empty('operation', 'list', '--state', 'failed', '-o', 'columns=metadata.type')).toBe(0)
  expect(await empty('admin', 'gpu', 'list', '--state', 'quarantined', '-o', 'columns=numa_node')).toBe(0)
})

test('an error of the service is printed once, with the option that caused it', async () => {
  const key = ['--ssh-key', publicKey]
  const short = await slipway('vm', 'create', 'x', ...small, ...key, '--ttl', '5s')
  expect(short).toEqual({ code: 2, stdout: '', stderr: 'slipway: --ttl must be from 300 to 2592000.\n' })
  const image = await slipway('vm', 'create', 'x', ...small, ...key, '--image', 'debian13')
  expect(image.code).toBe(2)
  expect(image.stderr).toMatch(/^slipway: --image must be one of .*; did you mean debian12:latest\?\n$/)
  const nothingNear = await slipway('vm', 'create', 'x', ...small, ...key, '--image', 'nope')
  expect(nothingNear.stderr).toMatch(/^slipway: --image must be one of [^;?]*\n$/)
  const place = await slipway('vm', 'create', 'x', '--type', 'a40.1x', '--location', 'us-east1', ...key)
  expect(place.stderr).toBe('slipway: There is no location called us-east1.\n  Did you mean us-east1-a?\n')
  const named = await slipway('disk', 'create', 'a b', '--size', '1GiB', '--location', 'us-east1-a')
  expect(named.stderr).toMatch(/^slipway: name must be at most 63 letters, .*; did you mean a-b\?\n$/)
})

test('with -o json, an error has the field names of the service', async () => {
  const { code, stderr } = await slipway(
    'disk',
    'create',
    'x',
    '--size',
    '1',
    '--location',
    'us-east1-a',
    '-o',
    'json',
  )
  expect(code).toBe(2)
  expect(JSON.parse(stderr)).toMatchObject({ code: 'invalid_argument', details: [{ field: '/size' }] })
})

test('--dry-run rejects what the creation would reject', async () => {
  const taken = await slipway('vm', 'create', 'train-7', ...small, '--ssh-key', publicKey, '--dry-run')
  expect(taken).toMatchObject({ code: 4, stdout: '' })
  expect(taken.stderr).toContain('train-7')
})

test('aliases such as ls and get work, and so does help before and after a command', async () => {
  expect((await slipway('vm', 'ls', '-o', 'columns=name', '--no-header')).stdout).toBe('train-7\n')
  expect((await slipway('vm', 'get', 'train-7', '-o', 'columns=name,state')).stdout).toBe(
    'train-7  running\n',
  )
  expect((await slipway('vm', 'logs', 'train-7')).code).toBe(0)
  const [before, after] = [await slipway('help', 'vm', 'list'), await slipway('vm', 'list', '--help')]
  expect(before).toEqual({ ...after, code: 0, stderr: '' })
  expect(before.stdout).toContain('Columns:\n  name, type, state, ')
  expect((await slipway('help')).stdout).toContain('Start with:')
})

test('the value of a global option is not read as a command', async () => {
  const run = await slipway('--context', 'vm', 'disk', 'list')
  expect(run.stderr).toContain('Unknown context vm.')
})

test('a list without rows accepts the columns and fields of its records', async () => {
  const list = (noun: string, columns: string) => slipway(noun, 'list', '-o', `columns=${columns}`)
  expect(await list('disk', 'name,created_at')).toMatchObject({ code: 0, stderr: '' })
  expect(await list('webhook', 'url,nope')).toMatchObject({ code: 2 })
})

test('without an SSH key, vm create says how to create or choose one', async () => {
  expect(await slipway('vm', 'create', 'x', ...small)).toMatchObject({
    code: 2,
    stderr:
      'slipway: There is no SSH key in ~/.ssh.\n  Create one with `ssh-keygen -t ed25519`, or choose a public key with --ssh-key.\n',
  })
})
