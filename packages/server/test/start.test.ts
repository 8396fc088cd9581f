import { execFile } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '@slipway/testing/eventually.ts'
import {
  type Credentials,
  credentialsOf,
  Launcher,
  queryDataDir,
  readyLine,
} from '@slipway/testing/launcher.ts'
import { freePort } from '@slipway/testing/port.ts'
import { postmasterPid } from '@slipway/testing/postgres/postmaster.ts'
import { root } from '@slipway/testing/root.ts'
import { countOf } from '@slipway/testing/setup/counts.ts'
import { afterAll, expect, test, vi } from 'vitest'

const run = promisify(execFile)
const hasCurl = (process.env.PATH ?? '').split(':').some((dir) => existsSync(join(dir, 'curl')))
const isRoot = process.getuid?.() === 0
const nobody = 65534
const kills = countOf('kills')
const writesPerRound = 10
const launcher = new Launcher()
// Processes are slow on a machine that is busy with the other tests.
vi.setConfig({ testTimeout: 240_000 })

afterAll(async () => {
  vi.resetConfig()
  await launcher.clear()
})

const dataDir = launcher.newDataDir()
let first: Credentials

test('the demo starts with npm and prints its URL, project and access key', async () => {
  const server = launcher.npmStart(['--port', '0', '--data-dir', dataDir])
  const text = await server.until(readyLine)
  first = credentialsOf(dataDir)
  expect(Object.keys(first).toSorted()).toEqual([
    ...['access_key', 'api_url', 'console_url', 'email'],
    ...['operator_email', 'operator_key', 'operator_password'],
    ...['organization_id', 'password', 'project_id'],
  ])
  expect(statSync(join(dataDir, 'credentials.json')).mode & 0o777).toBe(0o600)
  for (const shown of ['console_url', 'project_id', 'access_key'] as const)
    expect(text).toContain(first[shown])
  for (const password of [first.password, first.operator_password]) expect(text).not.toContain(password)
  expect(text).toMatch(/"ms":\d+,"msg":"ready"/)
  await server.untilErrors(/^Starting PostgreSQL … \d+\.\d s\nStarting the service … \d+\.\d s$/m)

  const curl = text.split('\n').find((line) => line.trim().startsWith('curl '))!
  const response = hasCurl
    ? (await run('sh', ['-c', curl.replace('curl ', 'curl -sS ')])).stdout
    : await fetchAsCurlWould(curl)
  expect(JSON.parse(response).items).toContainEqual({
    type: 'a100.8x',
    location: 'us-east1-a',
    available: true,
  })
  expect(postmasterPid(dataDir)).toBeDefined()
  // The signal goes to npm, as from a supervisor.
  expect(await server.end('SIGTERM')).toBe(0)
  expect(postmasterPid(dataDir)).toBeUndefined()
  await expect(fetch(`${first.api_url}/healthz`)).rejects.toThrow()
})

test('the demo keeps its secrets, prints its new URL, and shares its data with a second server', async () => {
  const servers = [0, 1].map(() => launcher.start(['--port', '0', '--data-dir', dataDir]))
  const urls = []
  for (const server of servers) {
    const text = await server.until(readyLine)
    urls.push(/Console +(\S+)/.exec(text)![1]!)
    // The access key is shown only at the first start, so that the message does not fill the logs of supervisors.
    expect(text).not.toContain(first.access_key)
  }
  expect(new Set(urls).size).toBe(2)
  const second = credentialsOf(dataDir)
  expect(urls).toContain(second.api_url)
  expect({ ...second, api_url: '', console_url: '' }).toEqual({ ...first, api_url: '', console_url: '' })
  for (const url of urls) {
    const headers = { authorization: `Bearer ${first.access_key}` }
    expect((await fetch(`${url}/v0.1`, { headers })).status).toBe(200)
  }
  expect(await servers[0]!.end('SIGTERM')).toBe(0)
  expect(postmasterPid(dataDir)).toBeDefined()
  // Sends the signal to the foreground process group, like Ctrl-C.
  expect(await servers[1]!.endGroup('SIGINT')).toBe(0)
  // Log lines are buffered, but none is lost.
  for (const server of servers) {
    const { output } = await server.ended()
    expect(output).toContain('"path":"/v0.1"')
    expect(output).toContain('Slipway is stopping.\n')
  }
  expect(postmasterPid(dataDir)).toBeUndefined()
})

test('a second server on the data of a running one prints the URL of the first, and does not change its credentials file', async () => {
  const running = launcher.start(['--port', '0', '--data-dir', dataDir])
  await running.until(readyLine)
  const file = () => readFileSync(join(dataDir, 'credentials.json'), 'utf8')
  const kept = file()
  const url = credentialsOf(dataDir).api_url

  const second = launcher.start(['--port', '0', '--data-dir', dataDir])
  expect(await second.until(readyLine)).toContain(`Slipway is already running at ${url}. `)
  expect(file()).toBe(kept)

  const samePort = await launcher.start(['--port', new URL(url).port, '--data-dir', dataDir]).ended()
  expect(samePort.code).toBe(1)
  expect(samePort.errors).toMatch(/^slipway: .* is already in use: Slipway is already running .*--port.*\n$/m)
  expect(samePort.errors).toContain(url)
  expect(samePort.errors).toContain(`(data directory ${dataDir})`)
  expect(file()).toBe(kept)

  // The file has the URL of a server that no longer runs, so the next one replaces it.
  await running.end('SIGKILL')
  const next = launcher.start(['--port', '0', '--data-dir', dataDir])
  const shown = /Console +(\S+)/.exec(await next.until(readyLine))![1]!
  expect(credentialsOf(dataDir)).toMatchObject({ api_url: shown, access_key: first.access_key })
  expect(shown).not.toBe(url)
  for (const server of [second, next]) expect(await server.end('SIGTERM')).toBe(0)
})

test('the demo loses no acknowledged row when it is killed during writes', async () => {
  const acknowledged = new Set<string>()
  let token = ''
  let refused = 0
  for (let round = 0; round < kills; round++) {
    const server = launcher.start(['--port', '0', '--data-dir', dataDir])
    await server.until(readyLine)
    if (round === 0)
      await queryDataDir(
        dataDir,
        `UPDATE organization_quotas SET max = 10000 WHERE name IN ('projects', 'networks', 'subnets', 'firewall_rules')`,
      )
    const { api_url, email, password, organization_id } = credentialsOf(dataDir)
    const post = async (path: string, body: object): Promise<{ id: string; access_token: string }> => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
      const response = await fetch(`${api_url}${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      if (response.status !== 200) refused++
      return response.json() as Promise<{ id: string; access_token: string }>
    }
    if (!token)
      token = (await post('/v0.1/auth/token', { grant_type: 'password', email, password })).access_token
    let isKilled = false
    const write = async (writer: number) => {
      for (let i = 0; !isKilled; i++) {
        const { id } = await post('/v0.1/projects', { name: `${round} ${writer} ${i}`, organization_id })
        acknowledged.add(id)
      }
    }
    const before = acknowledged.size
    const writers = [0, 1, 2].map((writer) => write(writer).catch(() => {}))
    await eventually(() => acknowledged.size > before + writesPerRound + 3 * round, 60_000)
    isKilled = true
    await server.end('SIGKILL')
    await Promise.all(writers)
  }
  const server = launcher.start(['--port', '0', '--data-dir', dataDir])
  await server.until(readyLine)
  const headers = { authorization: `Bearer ${token}` }
  const projects = await fetch(`${credentialsOf(dataDir).api_url}/v0.1/projects`, { headers })
  const stored = new Set(((await projects.json()) as { id: string }[]).map(({ id }) => id))
  expect(refused).toBe(0)
  expect(acknowledged.size).toBeGreaterThan(kills * writesPerRound)
  expect([...acknowledged].filter((id) => !stored.has(id))).toEqual([])

  expect(await server.end('SIGTERM')).toBe(0)
})

test.each([
  {
    made: 'by a newer version',
    change: 'INSERT INTO schema_versions (version, min_compatible_version) VALUES (999, 999)',
    line: /^slipway: this data was written by a newer version of Slipway .*\n$/m,
  },
  {
    made: 'before the first release',
    change:
      'TRUNCATE schema_versions; INSERT INTO schema_versions (version, min_compatible_version) VALUES (43, 20)',
    line: /^slipway: This data directory was created by a version before 0\.1\.0\. Use another data directory, or delete this one\.\n$/m,
  },
])('data created $made is rejected with a one-line error', async ({ change, line }) => {
  const dataDir = launcher.newDataDir()
  const server = launcher.start(['--port', '0', '--data-dir', dataDir])
  await server.until(readyLine)
  await queryDataDir(dataDir, change)
  expect(await server.end('SIGTERM')).toBe(0)
  const { code, errors } = await launcher.start(['--port', '0', '--data-dir', dataDir]).ended()
  expect(errors).toMatch(line)
  expect(code).toBe(1)
  expect(postmasterPid(dataDir)).toBeUndefined()
})

test('a start without the demo prints a setup code once, which creates the first operator', async () => {
  const dataDir = launcher.newDataDir()
  const args = ['--port', '0', '--data-dir', dataDir, '--no-demo']
  const first = launcher.start(args)
  const text = await first.until(readyLine)
  const url = /ready at (\S+)/.exec(text)![1]!
  const code = /Setup code .*: (\S+)/.exec(text)![1]!
  expect(existsSync(join(dataDir, 'credentials.json'))).toBe(false)

  const second = launcher.start(args)
  expect(await second.until(readyLine)).not.toContain('Setup code')
  await second.end('SIGTERM')

  const redeem = (password: string) =>
    fetch(`${url}/v0.1/auth/setup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code, email: 'first@example.com', password }),
    })
  const response = await redeem('a good password')
  const { access_token } = (await response.json()) as { access_token: string }
  expect(response.status).toBe(200)
  const headers = { authorization: `Bearer ${access_token}` }
  expect((await fetch(`${url}/v0.1/admin/organizations`, { headers })).status).toBe(200)
  expect((await redeem('another password')).status).toBe(400)

  // A port that is in use ends the start with a one-line error, whether or not the server shares its data.
  const port = ['--port', new URL(url).port]
  for (const other of [
    ['--data-dir', dataDir, '--no-demo'],
    ['--data-dir', launcher.newDataDir()],
  ]) {
    const { code: exitCode, errors, output } = await launcher.start([...port, ...other]).ended()
    expect(errors).toMatch(/^slipway: 127\.0\.0\.1:\d+ is already in use: .*--port.*\n$/m)
    expect(output).not.toMatch(/"level":[456]0/)
    expect(exitCode).toBe(1)
  }
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  expect(await first.end('SIGTERM')).toBe(0)
  expect(postmasterPid(dataDir)).toBeUndefined()
})

const fileWith = (text: string) => {
  const file = join(mkdtempSync(join(launcher.dir, 'config-')), 'slipway.toml')
  writeFileSync(file, text)
  return file
}
// The messages themselves are tested with the configuration. This tests the output and exit code of the process.
test.each([
  ['a misspelt flag', () => ['--prot', '1'], /unknown flag --prot; did you mean --port\?/],
  [
    'a misspelt key',
    () => ['--config', fileWith('[server]\nprot = 80\n')],
    /server\.prot.*did you mean server\.port\?/,
  ],
  ['a missing file', () => ['--config', '/nowhere/slipway.toml'], /\/nowhere\/slipway\.toml/],
])('%s is reported in one line, with exit code 2', async (_name, args, line) => {
  const { code, errors, output } = await launcher.start(args()).ended()
  expect(errors).toMatch(line)
  expect(errors).toMatch(/^slipway: [^\n]+\n$/m)
  expect([code, output]).toEqual([2, ''])
})

test('a data directory that cannot be created is reported in one line', async () => {
  const file = fileWith('')
  const { code, errors } = await launcher.start(['--port', '0', '--data-dir', join(file, 'data')]).ended()
  expect(errors).toMatch(/^slipway: [^\n]+\n$/m)
  expect(code).toBe(1)
})

test('--help and --version print and exit', async () => {
  const help = await launcher.start(['--help']).ended()
  expect([help.code, help.output]).toEqual([0, expect.stringContaining('--data-dir DIR')])
  const { version } = JSON.parse(readFileSync(join(root, 'packages/server/package.json'), 'utf8'))
  expect(await launcher.start(['--version']).ended()).toEqual({
    code: 0,
    output: `${version}\n`,
    errors: '',
  })
})

test('an external database that does not respond is reported in one line', async () => {
  const port = await freePort()
  const env = { DATABASE_URL: `postgresql://slipway:secret-of-database@127.0.0.1:${port}/slipway` }
  const { code, errors } = await launcher
    .start(['--port', '0', '--data-dir', launcher.newDataDir()], { env })
    .ended()
  expect(errors).toMatch(/^slipway: [^\n]+\n$/m)
  expect(errors).not.toContain('secret-of-database')
  expect(code).toBe(1)
})

test.skipIf(!isRoot || !isReachable(root))(
  'an ordinary user can start the service from a clone that another user owns',
  async () => {
    const home = mkdtempSync(join(launcher.dir, 'nobody-'))
    chownSync(home, nobody, nobody)
    const own = join(home, 'data')
    launcher.use(own)
    const server = launcher.start(['--port', '0', '--data-dir', own], { uid: nobody, gid: nobody, cwd: home })
    await server.until(readyLine)
    expect(statSync(`/proc/${postmasterPid(own)}`).uid).toBe(nobody)
    expect(await server.end('SIGTERM')).toBe(0)
  },
)

/** Returns whether other users can access the path. */
function isReachable(path: string): boolean {
  for (let at = path; at !== '/'; at = join(at, '..')) if ((statSync(at).mode & 0o005) !== 0o005) return false
  return true
}

async function fetchAsCurlWould(line: string): Promise<string> {
  const [, header, value, url] = /-H "(\w+): ([^"]+)" (\S+)/.exec(line)!
  return (await fetch(url!, { headers: { [header!]: value! } })).text()
}
