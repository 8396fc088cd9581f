import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()
const { home, runAs, executable } = cli
const contextFile = join(home, 'config/slipway/contexts.json')
beforeAll(() => cli.createVm('train-7'))

const slipway = (...words: string[]) => runAs(words)
const whoami = async (...words: string[]) =>
  JSON.parse((await slipway('whoami', '-o', 'json', ...words)).stdout).caller

test('without a login, the CLI does not guess a service or a key', async () => {
  const { code, stderr } = await slipway('vm', 'list')
  expect(code).toBe(2)
  expect(stderr).toContain('Log in with `slipway login`')
})

test('in the folder of a local server, its credentials are used', async () => {
  const run = await executable(['vm', 'list', '-o', 'columns=name', '--no-header'], {
    cwd: join(cli.server.dataDir, '..'),
  })
  expect(run).toEqual({ code: 0, stdout: 'train-7\n', stderr: '' })
})

test('login with a key creates a context file that only its owner can read', async () => {
  const login = await slipway('login', '--api-url', cli.server.api_url, '--access-key', cli.server.access_key)
  const prefix = cli.server.access_key.slice(0, 12)
  const rights = 'write: can view and change the VMs, disks, networks and firewall rules of the project'
  expect(login).toEqual({
    code: 0,
    stdout: '',
    stderr: `Logged in to ${cli.server.api_url} as access key ${prefix}, project default (${rights}).
The context default is stored in ${contextFile}.
`,
  })
  expect(statSync(contextFile).mode & 0o777).toBe(0o600)
  expect(await whoami()).toMatchObject({ kind: 'access_key', project_id: cli.server.project_id })
})

test('login with a credentials file says that it also stores the operator key, and whoami shows both', async () => {
  const credentials = join(cli.server.dataDir, 'credentials.json')
  const words = ['login', '--name', 'local', '--credentials', credentials]
  const { code, stderr } = await slipway(...words)
  expect(code).toBe(0)
  const [access, operator] = [cli.server.access_key.slice(0, 12), cli.server.operator_key.slice(0, 12)]
  expect(stderr).toContain(`as access key ${access}, project default (write: can view and change`)
  expect(stderr).toContain(`The context also stores the operator key ${operator} (operator: can use every`)
  const { stdout } = await slipway('whoami')
  expect(stdout).toMatch(
    new RegExp(`Caller +access key ${access}, from context local\nRole +write: can view and`),
  )
  expect(stdout).toMatch(
    new RegExp(`Admin caller +operator key ${operator}, from context local\nAdmin role +operator: can use`),
  )
  const byVariable = { SLIPWAY_OPERATOR_KEY: cli.server.operator_key }
  expect((await runAs(['whoami'], { env: byVariable })).stdout).toContain(
    `operator key ${operator}, from SLIPWAY_OPERATOR_KEY`,
  )
  const { operator: caller } = JSON.parse((await slipway('whoami', '-o', 'json')).stdout)
  expect(caller).toMatchObject({ kind: 'operator_key', is_operator: true })
  expect((await slipway('logout', 'local')).code).toBe(0)
})

test('login with a wrong key or password is denied and changes no context', async () => {
  const before = readFileSync(contextFile, 'utf8')
  const key = await slipway('login', '--api-url', cli.server.api_url, '--access-key', 'slp_wrong')
  expect(key.code).toBe(5)
  const words = ['login', '--api-url', cli.server.api_url, '--email', cli.server.email, '--password-stdin']
  expect((await runAs(words, { input: 'wrong\n' })).code).toBe(5)
  expect(readFileSync(contextFile, 'utf8')).toBe(before)
})

test('login with a password creates a session, which is stored and refreshed when it has expired', async () => {
  const words = [
    'login',
    '--name',
    'person',
    '--api-url',
    cli.server.api_url,
    '--email',
    cli.server.email,
    '--password-stdin',
  ]
  expect(await executable(words, { input: `${cli.server.password}\n` })).toMatchObject({ code: 0 })
  expect(await whoami()).toMatchObject({ kind: 'user', email: cli.server.email })

  const file = JSON.parse(readFileSync(contextFile, 'utf8'))
  const { refreshToken } = file.contexts.person.session
  file.contexts.person.session.expiresAt = 0
  writeFileSync(contextFile, JSON.stringify(file))
  expect(await whoami()).toMatchObject({ email: cli.server.email })
  const after = JSON.parse(readFileSync(contextFile, 'utf8')).contexts.person.session
  expect(after.refreshToken).not.toBe(refreshToken)
  expect(after.expiresAt).toBeGreaterThan(Date.now())
})

test('contexts can be listed and selected; flags override the environment, which overrides contexts', async () => {
  const rows = JSON.parse((await slipway('context', 'list', '-o', 'json')).stdout)
  expect(rows.map((row: { name: string; is_current: boolean }) => [row.name, row.is_current])).toEqual([
    ['default', false],
    ['person', true],
  ])
  expect((await slipway('context', 'use', 'default')).code).toBe(0)
  expect((await slipway('context', 'use', 'nowhere')).code).toBe(3)
  expect(await whoami()).toMatchObject({ kind: 'access_key' })
  expect(await whoami('--context', 'person')).toMatchObject({ kind: 'user' })
  const operator = { SLIPWAY_ACCESS_KEY: cli.server.operator_key }
  const byEnvironment = await runAs(['whoami', '-o', 'json'], { env: operator })
  expect(JSON.parse(byEnvironment.stdout).caller.kind).toBe('operator_key')
  const byFlag = await runAs(['whoami', '-o', 'json', '--access-key', cli.server.access_key], {
    env: operator,
  })
  expect(JSON.parse(byFlag.stdout).caller.kind).toBe('access_key')
})

test('an empty environment variable counts as unset', async () => {
  const names = ['API_URL', 'ACCESS_KEY', 'OPERATOR_KEY', 'PROJECT', 'CONTEXT']
  const env = Object.fromEntries(names.map((name) => [`SLIPWAY_${name}`, '']))
  const { code, stdout } = await runAs(['whoami'], { env })
  expect(code).toBe(0)
  expect(stdout).toMatch(/from context default\n/)
  expect(stdout).toContain(cli.server.project_id)
})

test('--project finds a project by its name', async () => {
  const list = await slipway('vm', 'list', '--project', 'default', '-o', 'columns=name', '--no-header')
  expect(list.stdout).toBe('train-7\n')
  expect((await slipway('vm', 'list', '--project', 'defualt')).stderr).toContain('Did you mean default?')
})

test('logout ends the session at the service', async () => {
  const { accessToken } = JSON.parse(readFileSync(contextFile, 'utf8')).contexts.person.session
  const logout = await slipway('logout', 'person')
  expect(logout).toMatchObject({ code: 0, stderr: 'Logged out of person. The current context is default.\n' })
  expect(Object.keys(JSON.parse(readFileSync(contextFile, 'utf8')).contexts)).toEqual(['default'])
  const response = await fetch(`${cli.server.api_url}/v0.1`, {
    headers: { authorization: `Bearer ${accessToken}` },
  })
  expect(response.status).toBe(401)
})
