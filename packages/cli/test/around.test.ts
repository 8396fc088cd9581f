import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProgram } from '@slipway/testing/program.ts'
import { type RealServer, startRealServer } from '@slipway/testing/real-server.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionScripts } from '../src/commands/completion/scripts.ts'
import { binary, freshHome } from './support/cli.ts'
import { goldenFile, transcript } from './support/golden.ts'

const { home, base, slipway: runAs, remove } = freshHome()
const contextFile = join(home, 'config/slipway/contexts.json')
let server: RealServer
let env: Record<string, string>

beforeAll(async () => {
  server = await startRealServer()
  env = {
    SLIPWAY_API_URL: server.api_url,
    SLIPWAY_ACCESS_KEY: server.access_key,
    SLIPWAY_PROJECT: server.project_id,
  }
  writeFileSync(join(home, 'key.pub'), `${sshKey}\n`)
  const create = [
    'vm',
    'create',
    'train-7',
    '--type',
    'a40.1x',
    '--location',
    'us-east1-a',
    '--ssh-key',
    'key.pub',
  ]
  expect((await runAs(create, { env })).code).toBe(0)
})
afterAll(async () => {
  await server?.close()
  remove()
})

const slipway = (...words: string[]) => runAs(words)
const whoami = async (...words: string[]) =>
  JSON.parse((await slipway('whoami', '-o', 'json', ...words)).stdout).caller

test('without a login no service and no key is guessed', async () => {
  const { code, stderr } = await slipway('vm', 'list')
  expect(code).toBe(2)
  expect(stderr).toContain('Log in with `slipway login`')
})

test('in the folder of a local server its own credentials are used', async () => {
  const run = await runAs(['vm', 'list', '-o', 'columns=name', '--no-header'], {
    cwd: join(server.dataDir, '..'),
  })
  expect(run).toEqual({ code: 0, stdout: 'train-7\n', stderr: '' })
})

test('the audit log is exported as JSON lines, and continued from a position without a gap', async () => {
  const operator = { env: { ...env, SLIPWAY_OPERATOR_KEY: server.operator_key } }
  const exported = async (...words: string[]) => {
    const { stdout, code } = await runAs(['admin', 'audit', 'export', ...words], operator)
    expect(code).toBe(0)
    return stdout
      .trimEnd()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { position: number; type: string; client_address: string })
  }
  const first = await exported()
  expect(first.find(({ type }) => type === 'vm.creating')?.client_address).toBe('127.0.0.1')
  const positions = first.map(({ position }) => position)
  expect(positions).toEqual(positions.toSorted((a, b) => a - b))
  const middle = positions[Math.floor(positions.length / 2)]!
  const rest = (await exported('--since', String(middle))).map(({ position }) => position)
  expect(rest.slice(0, positions.length - positions.indexOf(middle) - 1)).toEqual(
    positions.slice(positions.indexOf(middle) + 1),
  )
})

test('login with a key makes a context that nobody else can read', async () => {
  const login = await slipway('login', '--api-url', server.api_url, '--access-key', server.access_key)
  expect(login).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(statSync(contextFile).mode & 0o777).toBe(0o600)
  expect(await whoami()).toMatchObject({ kind: 'access_key', project_id: server.project_id })
})

test('login with a wrong key or password is denied and changes no context', async () => {
  const before = readFileSync(contextFile, 'utf8')
  const key = await slipway('login', '--api-url', server.api_url, '--access-key', 'slp_wrong')
  expect(key.code).toBe(5)
  const words = ['login', '--api-url', server.api_url, '--email', server.email, '--password-stdin']
  expect((await runAs(words, { input: 'wrong\n' })).code).toBe(5)
  expect(readFileSync(contextFile, 'utf8')).toBe(before)
})

test('login with a password makes a session, refreshed when it is stale and kept', async () => {
  const words = [
    'login',
    '--name',
    'person',
    '--api-url',
    server.api_url,
    '--email',
    server.email,
    '--password-stdin',
  ]
  expect(await runAs(words, { input: `${server.password}\n` })).toMatchObject({ code: 0 })
  expect(await whoami()).toMatchObject({ kind: 'user', email: server.email })

  const file = JSON.parse(readFileSync(contextFile, 'utf8'))
  const { refreshToken } = file.contexts.person.session
  file.contexts.person.session.expiresAt = 0
  writeFileSync(contextFile, JSON.stringify(file))
  expect(await whoami()).toMatchObject({ email: server.email })
  const after = JSON.parse(readFileSync(contextFile, 'utf8')).contexts.person.session
  expect(after.refreshToken).not.toBe(refreshToken)
  expect(after.expiresAt).toBeGreaterThan(Date.now())
})

test('contexts are listed, chosen, and flags win over the environment and that over them', async () => {
  const rows = JSON.parse((await slipway('context', 'list', '-o', 'json')).stdout)
  expect(rows.map((row: { name: string; is_current: boolean }) => [row.name, row.is_current])).toEqual([
    ['default', false],
    ['person', true],
  ])
  expect((await slipway('context', 'use', 'default')).code).toBe(0)
  expect((await slipway('context', 'use', 'nowhere')).code).toBe(3)
  expect(await whoami()).toMatchObject({ kind: 'access_key' })
  expect(await whoami('--context', 'person')).toMatchObject({ kind: 'user' })
  const operator = { SLIPWAY_ACCESS_KEY: server.operator_key }
  const byEnvironment = await runAs(['whoami', '-o', 'json'], { env: operator })
  expect(JSON.parse(byEnvironment.stdout).caller.kind).toBe('operator_key')
  const byFlag = await runAs(['whoami', '-o', 'json', '--access-key', server.access_key], { env: operator })
  expect(JSON.parse(byFlag.stdout).caller.kind).toBe('access_key')
})

test('--project finds a project by its name', async () => {
  const list = await slipway('vm', 'list', '--project', 'default', '-o', 'columns=name', '--no-header')
  expect(list.stdout).toBe('train-7\n')
  expect((await slipway('vm', 'list', '--project', 'defualt')).stderr).toContain('Did you mean default?')
})

test('logout ends the session at the service', async () => {
  const { accessToken } = JSON.parse(readFileSync(contextFile, 'utf8')).contexts.person.session
  expect((await slipway('logout', 'person')).code).toBe(0)
  expect(Object.keys(JSON.parse(readFileSync(contextFile, 'utf8')).contexts)).toEqual(['default'])
  const answer = await fetch(`${server.api_url}/v0.1`, {
    headers: { authorization: `Bearer ${accessToken}` },
  })
  expect(answer.status).toBe(401)
})

describe('with the login of an owner', () => {
  const asOwner = (...words: string[]) => runAs([...words, '--context', 'owner'])
  beforeAll(async () => {
    const words = [
      'login',
      '--name',
      'owner',
      '--api-url',
      server.api_url,
      '--email',
      server.email,
      '--password-stdin',
    ]
    expect(await runAs(words, { input: server.password })).toMatchObject({ code: 0 })
  })

  async function golden(name: string, ...lines: string[][]) {
    const texts: string[] = []
    for (const words of lines) texts.push(transcript(words, await asOwner(...words)))
    await expect(`${texts.join('\n\n')}\n`).toMatchFileSnapshot(goldenFile(name))
  }

  test('access keys are made, used and revoked', async () => {
    const created = await asOwner('key', 'create', 'ci', '--role', 'read', '--expires', '30d', '-o', 'json')
    const { secret } = JSON.parse(created.stdout)
    const withKey = {
      SLIPWAY_API_URL: server.api_url,
      SLIPWAY_ACCESS_KEY: secret,
      SLIPWAY_PROJECT: server.project_id,
    }
    expect((await runAs(['vm', 'list'], { env: withKey })).code).toBe(0)
    expect((await runAs(['vm', 'delete', 'train-7', '--yes'], { env: withKey })).code).toBe(5)
    expect((await asOwner('key', 'delete', 'ci', '--yes')).code).toBe(0)
    expect((await runAs(['vm', 'list'], { env: withKey })).code).toBe(5)
  })

  test('projects and members are made, changed and deleted', async () => {
    await golden(
      'people.txt',
      ['org', 'list', '-o', 'columns=name,id'],
      ['project', 'create', 'research'],
      ['project', 'rename', 'research', 'experiments'],
      ['project', 'list', '-o', 'columns=name,version'],
      ['project', 'delete', 'experiments', '--yes'],
      ['member', 'add', 'grace@example.com', '--role', 'viewer', '-o', 'columns=email,role,state'],
      ['member', 'change', 'grace@example.com', '--role', 'admin', '-o', 'columns=email,role,state'],
      ['member', 'list', '-o', 'columns=email,role,state'],
      ['member', 'delete', 'grace@example.com', '--yes'],
    )
  })

  test('budgets are set, and costs, usage, invoices and the billing link are shown', async () => {
    const json = async (...words: string[]) => {
      const run = await asOwner(...words, '-o', 'json')
      expect(run).toMatchObject({ code: 0, stderr: '' })
      return JSON.parse(run.stdout)
    }
    expect(await json('project', 'budget', '--set', '500', '--hard-stop')).toMatchObject({
      monthly_usd: 500,
      hard_stop: true,
    })
    expect(await json('project', 'budget', '--none')).toMatchObject({ monthly_usd: null })
    expect((await json('cost')).usd_per_hour).toBeCloseTo(0.9)
    expect((await json('cost', '--org')).usd_per_hour).toBeCloseTo(0.9)
    expect(await json('usage')).toEqual([])
    expect(await json('org', 'invoices')).toBeInstanceOf(Array)
    expect((await asOwner('usage', '--csv')).stdout).toContain('product_name')
    expect((await asOwner('billing', '--no-open')).stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\S+\n$/)
  })

  test('webhooks are created, paused, changed and deleted', async () => {
    // A public address; nothing is ever sent there, since no VM changes before the pause.
    const url = 'https://11.0.0.1/slipway'
    const made = await asOwner('webhook', 'create', url, '--events', 'vm.*', '-o', 'json')
    expect(JSON.parse(made.stdout).secret).toMatch(/^whsec_/)
    expect((await asOwner('webhook', 'pause', url, '-o', 'columns=state')).stdout).toBe('paused\n')
    expect((await asOwner('webhook', 'deliveries', url, '-o', 'json')).stdout).toBe('[]\n')
    expect((await asOwner('webhook', 'delete', url, '--yes')).code).toBe(0)
    expect((await asOwner('webhook', 'list', '-o', 'json')).stdout).toBe('[]\n')
  })

  test('events are listed, and followed as they happen', async () => {
    const listed = JSON.parse((await asOwner('events', '--type', 'vm.running', '-o', 'json')).stdout)
    expect(listed.map((event: { type: string }) => event.type)).toEqual(['vm.running'])
    const words = [
      binary,
      'events',
      '-f',
      '--after',
      String(listed[0].position),
      '--context',
      'owner',
      '-o',
      'json',
    ]
    const follower = startProgram(process.execPath, words, { env: base, cwd: home })
    const made = asOwner('network', 'create', 'followed', '--cidr', '10.30.0.0/16')
    await follower.until(/"network\.created".*\n/)
    await follower.end('SIGINT')
    const types = follower.lines.map((line) => JSON.parse(line).type)
    expect(types).toContain('network.created')
    expect((await made).code).toBe(0)
    await asOwner('network', 'delete', 'followed', '--yes')
  })

  test('the operator makes organizations and users, and suspends them', async () => {
    const operator = { SLIPWAY_API_URL: server.api_url, SLIPWAY_OPERATOR_KEY: server.operator_key }
    const admin = async (...words: string[]) => {
      const run = await runAs(['admin', ...words, '-o', 'json'], { env: operator })
      expect(run).toMatchObject({ code: 0, stderr: '' })
      return JSON.parse(run.stdout)
    }
    await admin('org', 'create', 'Harbour Labs')
    const user = await admin('user', 'create', 'ada@example.com', '--org', 'Harbour Labs', '--role', 'owner')
    expect(user).toMatchObject({ email: 'ada@example.com', state: 'invited' })
    const code = user.invite_url.split('#code=')[1]
    const accepted = await fetch(`${server.api_url}/v0.1/auth/accept`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code, password: 'correct horse battery' }),
    })
    expect(accepted.status).toBe(200)
    expect(await admin('user', 'suspend', 'ada@example.com')).toMatchObject({ suspended: true })
    expect(await admin('org', 'suspend', 'Harbour Labs', '--stop-vms')).toMatchObject({ suspended: true })
    expect(await admin('org', 'restore', 'Harbour Labs')).toMatchObject({ suspended: false })
    const quotas = await admin('quota', 'set', server.project_id, 'vms=7')
    expect(quotas).toContainEqual(expect.objectContaining({ name: 'vms', max: 7 }))
    const free = await admin('quota', 'set', server.project_id, 'vms=none')
    expect(free).not.toContainEqual(expect.objectContaining({ name: 'vms', max: 7 }))
    const together = await admin('org', 'quotas', 'Harbour Labs', 'a100_gpus=9', 'projects=3')
    expect(together).toContainEqual({ name: 'a100_gpus', max: 9, used: 0, available: 9 })
    expect(await admin('org', 'quotas', 'Harbour Labs')).toEqual(together)
    const [host] = await admin('host', 'list', '--location', 'us-east1-a')
    expect(await admin('host', 'close', host.id)).toMatchObject({ schedulable: false })
    expect(await admin('host', 'open', host.id)).toMatchObject({ schedulable: true })
    const [gpu] = await admin('gpu', 'list', '--host', host.id, '--state', 'free')
    expect(await admin('gpu', 'quarantine', gpu.id)).toMatchObject({ state: 'quarantined' })
    expect(await admin('gpu', 'free', gpu.id)).toMatchObject({ id: gpu.id })
  })
})

const complete = async (...words: string[]) =>
  (await runAs(['__complete', '--', ...words], { env })).stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split('\t')[0])

test('completion offers commands, options, fixed values and live names', async () => {
  expect(await complete('vm', 's')).toEqual(['show', 'start', 'stop', 'ssh'])
  expect(await complete('vm', 'create', '--ssh')).toEqual(['--ssh-key'])
  expect(await complete('vm', 'list', '-o', '')).toEqual(['table', 'json', 'yaml'])
  expect(await complete('vm', 'show', 'tr')).toEqual(['train-7'])
  expect(await complete('vm', 'create', 'x', '--location', 'us')).toEqual(['us-east1-a'])
  expect(await complete('admin', 'user', '')).toEqual([
    'list',
    'create',
    'suspend',
    'restore',
    'reset',
    'unmark',
    'remove-totp',
  ])
  expect(await complete('vm', 'ssh', 'train-7', '--', '')).toEqual([])
})

test('completion says nothing when the service is away', async () => {
  const run = await runAs(['__complete', '--', 'vm', 'show', ''], {
    env: { ...env, SLIPWAY_API_URL: 'http://127.0.0.1:1' },
  })
  expect(run).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('completion in a real bash knows live names', () => {
  symlinkSync(binary, join(home, 'slipway'))
  const script = `${completionScripts.bash}
    COMP_WORDS=(slipway vm show t); COMP_CWORD=3; _slipway; echo "\${COMPREPLY[@]}"
    COMP_WORDS=(slipway vm ""); COMP_CWORD=2; _slipway; echo "\${COMPREPLY[0]}"`
  const { stdout } = spawnSync('bash', ['--norc', '-c', script], {
    env: { ...base, ...env, PATH: `${home}:${base.PATH}` },
    encoding: 'utf8',
  })
  expect(stdout).toBe('train-7\ncreate\n')
})

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: what a tool answers is looked at, not typed
  result: any
  error?: { code: number; message: string }
}

/** A conversation with `slipway mcp`: requests go out together, answers come back by id. */
async function converse(words: string[], requests: { method: string; params?: object }[]) {
  const lines = requests.map((request, id) => `${JSON.stringify({ jsonrpc: '2.0', id, ...request })}\n`)
  const { stdout } = await runAs(['mcp', ...words], { env, input: lines.join('') })
  const answers = new Map<number, Answer>()
  for (const line of stdout.split('\n').slice(0, -1)) {
    const message = JSON.parse(line)
    answers.set(message.id, message)
  }
  return requests.map((_, id) => answers.get(id) ?? { result: undefined })
}
const call = (name: string, given: object = {}) => ({
  method: 'tools/call',
  params: { name, arguments: given },
})

test('tools for agents introduce themselves and read by name', async () => {
  const [hello, ping, list, vm, unknown, nothing] = await converse(
    [],
    [
      { method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} } },
      { method: 'ping' },
      { method: 'tools/list' },
      call('vm_get', { vm_id: 'train-7' }),
      { method: 'resources/list' },
      call('vm_get', { vm_id: 'nobody' }),
    ],
  )
  expect(hello!.result).toMatchObject({ protocolVersion: '2025-06-18', serverInfo: { name: 'slipway' } })
  expect(ping!.result).toEqual({})
  for (const tool of list!.result.tools) {
    expect(tool.annotations.readOnlyHint, tool.name).toBe(true)
    expect(tool.inputSchema.type).toBe('object')
  }
  expect(vm!.result.structuredContent).toMatchObject({ name: 'train-7', state: 'STATE_RUNNING' })
  expect(unknown!.error?.code).toBe(-32601)
  expect(nothing!.result.isError).toBe(true)
  expect(JSON.parse(nothing!.result.content[0].text)).toMatchObject({ code: 'not_found' })
})

test('tools for agents change nothing unless they may', async () => {
  const [refused] = await converse([], [call('vm_delete', { vm_id: 'train-7' })])
  expect(refused!.error?.message).toContain('There is no tool vm_delete')
  const disk = { name: 'agents', size: '10GiB', location: 'us-east1-a' }
  const [started] = await converse(['--allow-writes'], [call('disk_create', disk)])
  const { operation_id } = started!.result.structuredContent.operation
  const [ended, bad] = await converse(
    ['--allow-writes'],
    [call('operation_wait', { operation_id }), call('disk_create', { ...disk, colour: 'red' })],
  )
  expect(ended!.result.structuredContent).toMatchObject({ state: 'SUCCEEDED', result: { name: 'agents' } })
  expect(bad!.result.isError).toBe(true)
})

test('exports name the running VMs', async () => {
  const { stdout } = await runAs(['export', 'ssh-config', '--identity', '~/.ssh/work'], { env })
  expect(stdout).toMatch(/Host train-7\n {2}HostName 198\.18\.\d+\.\d+\n {2}User ubuntu\n/)
  if (existsSync('/usr/bin/ssh')) {
    const config = join(home, 'ssh.conf')
    writeFileSync(config, stdout)
    const { stdout: read } = spawnSync('ssh', ['-G', '-F', config, 'train-7'], { encoding: 'utf8' })
    expect(read).toContain('user ubuntu\n')
    expect(read).toContain('identityfile ~/.ssh/work\n')
  }
})
