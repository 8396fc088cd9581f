import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { createDatabase, query } from '@slipway/testing/database.ts'
import { Launcher, serverProgram } from '@slipway/testing/launcher.ts'
import { freePort } from '@slipway/testing/port.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { afterAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/index.ts'
import { examineService } from '../../src/doctor/index.ts'
import { findingLines } from '../../src/engines/incus/operate/finding.ts'

const launcher = new Launcher()
afterAll(() => launcher.clear())

const location = simulatedLocation({ name: 'us-east1-a', publicIpv4: '198.18.0.0/18' })

function configFile(text: string): string {
  const path = join(launcher.dir, 'slipway.toml')
  writeFileSync(path, text)
  return path
}

/** Runs in this process, because starting a separate process takes longer than the checks. */
async function examine(dataDir: string, config: string, env: NodeJS.ProcessEnv = {}) {
  const args = ['--no-demo', '--data-dir', dataDir, '--config', configFile(config)]
  const output = findingLines(
    await examineService(loadConfig(args, env, (path) => readFileSync(path, 'utf8'))),
  )
  /** Returns the verdict and the text of the first finding of a step. */
  const finding = (step: string) => {
    const line = output.split('\n').find((each) => each.slice(9).startsWith(`${step} `))
    return line && `${line.slice(0, 7).trim()}: ${line.slice(9 + step.length).trim()}`
  }
  return { output, finding }
}

function writeCertificate(days: number, name = 'gpu.example.com'): { cert: string; key: string } {
  const file = join(launcher.dir, `${name}-${days}`)
  const [cert, key] = [`${file}.crt`, `${file}.key`]
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
  const form = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  execFileSync('openssl', ['req', ...form, ...subject, '-days', String(days), '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  })
  return { cert, key }
}

const doctor = (config: string, dataDir: string) =>
  launcher.start(['doctor', '--data-dir', dataDir, '--config', configFile(config)]).ended()

test('an installation before its first start lacks nothing, and a problem sets the exit code', async () => {
  const dataDir = launcher.newDataDir()
  const before = await doctor(location, dataDir)
  expect([before.code, before.errors]).toEqual([0, ''])
  expect(before.output).toMatch(/^ok +database +embedded; the first start creates it$/m)
  expect(before.output).toMatch(/^ok +us-east1-a: engine +simulated: no real VMs$/m)
  expect(before.output).toMatch(/\nNo problems found\.\n$/)

  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'secret.key'), `${'ab'.repeat(32)}\n`)
  chmodSync(join(dataDir, 'secret.key'), 0o644)
  const open = await doctor(location, dataDir)
  expect(open.code).toBe(1)
  expect(open.output).toMatch(/^problem +secret key +other users can read .*\n +→ chmod 600/m)
  expect(open.output).toMatch(/\nProblems: 1\.\n$/)
})

test('settings of an external database, certificates, webhooks and identity providers are checked, each with advice', async () => {
  const database = await createDatabase()
  const dataDir = launcher.newDataDir()
  mkdirSync(dataDir)
  chmodSync(dataDir, 0o777)
  const projectId = '00000000-0000-7000-8000-000000000001'
  await query(
    database.url,
    `INSERT INTO organizations (id, name) VALUES ('${projectId}', 'o');
     INSERT INTO projects (id, organization_id, name) VALUES ('${projectId}', '${projectId}', 'p');
     INSERT INTO webhooks (id, project_id, url, event_types, since_position)
     VALUES ('${projectId}', '${projectId}', 'http://127.0.0.1:1/hook', '{}', 0);
     INSERT INTO secret_key (id) VALUES ('0123456789abcdef')`,
  )
  const name = new URL(database.url).pathname.slice(1)
  await query(database.url, `ALTER DATABASE ${name} SET synchronous_commit = off`)
  const { cert, key } = writeCertificate(5)
  const port = await freePort()
  const config = `
[server]
host = "0.0.0.0"
public_url = "https://gpu.example.com"
tls_cert_file = "${cert}"
tls_key_file = "${key}"
[[oidc]]
name = "company"
issuer = "http://127.0.0.1:${port}"
client_id = "slipway"
client_secret_env = ""
`
  const env = { DATABASE_URL: database.url }
  const found = await examine(dataDir, config, env)
  expect(found.finding('data directory')).toMatch(/^problem: other users can write to/)
  expect(found.output).toMatch(/synchronous_commit is off.*\n +→ set synchronous_commit = on/)
  expect(found.output).toMatch(/the service logs in as a superuser/)
  expect(found.finding('secret key')).toMatch(/^problem: .*does not exist, but secrets are encrypted/)
  expect(found.finding('TLS')).toMatch(/^warning: .* expires on /)
  expect(found.finding('locations')).toMatch(/^warning: none/)
  expect(found.finding('webhook egress')).toMatch(/^problem: none of 1 webhooks accepts a connection/)
  expect(found.finding('single sign-on company')).toMatch(/^problem: .*cannot be reached/)
  expect(found.output).not.toContain(new URL(database.url).password)

  writeFileSync(join(dataDir, 'secret.key'), `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  expect((await examine(dataDir, config, env)).finding('secret key')).toMatch(
    /^problem: .* but secrets are encrypted with 0123456789abcdef$/,
  )
  const other = config.replace('gpu.example.com', 'other.example.com')
  expect((await examine(dataDir, other, env)).finding('TLS')).toMatch(/is not for other\.example\.com$/)
  const plain = '[server]\nhost = "0.0.0.0"\n'
  expect((await examine(dataDir, plain, env)).finding('TLS')).toMatch(/^problem: .*without TLS/)

  const dead = `postgresql://slipway:secret-word@127.0.0.1:${port}/slipway`
  const away = await examine(dataDir, plain, { DATABASE_URL: dead })
  expect(away.output).toMatch(/^problem +database +no server is writable$/m)
  expect(away.output).not.toContain('secret-word')
  await database.drop()
}, 120_000)

test.skipIf(process.getuid?.() !== 0)(
  'a full disk, a low limit of file descriptors and a clock without NTP are reported with advice',
  async () => {
    const [programs, disk] = ['programs', 'disk'].map((name) => join(launcher.dir, name)) as [string, string]
    for (const dir of [programs, disk]) mkdirSync(dir)
    writeFileSync(join(programs, 'timedatectl'), '#!/bin/sh\necho no\n', { mode: 0o755 })
    const script = `mount -t tmpfs -o size=64m tmpfs ${disk} && ulimit -n 1024 && exec "$@"`
    const flags = ['doctor', '--data-dir', disk, '--config', configFile(location)]
    const command = ['sh', '-c', script, 'sh', process.execPath, serverProgram, ...flags]
    const env = { PATH: `${programs}:${process.env.PATH}` }
    const { code, output } = await launcher.run('unshare', ['--mount', ...command], { env }).ended()
    expect(code).toBe(1)
    expect(output).toMatch(/^problem +disk +0\.1 GiB of 0\.1 GiB are free for .*\n +→ .*free space/m)
    expect(output).toMatch(/^warning +file descriptors +limit 1024: .*\n +→ set LimitNOFILE=65536/m)
    expect(output).toMatch(/^warning +clock +not synchronized by NTP\n +→ install chrony/m)
  },
)

test('the certificate of a proxy is checked at the public URL', async () => {
  const port = await freePort()
  const config = `[server]\npublic_url = "https://localhost:${port}"\n`
  const found = async () => (await examine(launcher.newDataDir(), config)).finding('TLS')
  const behindProxy = async (days: number, name?: string) => {
    const { cert, key } = writeCertificate(days, name)
    const proxy = createServer({ cert: readFileSync(cert), key: readFileSync(key) })
    await new Promise<void>((resolve) => proxy.listen(port, 'localhost', resolve))
    return found().finally(() => proxy.close())
  }
  expect(await found()).toMatch(/^warning: .* cannot be reached from this machine: .*ECONNREFUSED/)
  expect(await behindProxy(90)).toMatch(/^problem: the certificate of .* is not for localhost$/)
  expect(await behindProxy(5, 'localhost')).toMatch(/^warning: .* expires on /)
  expect(await behindProxy(90, 'localhost')).toMatch(
    /^warning: .* is not trusted here: DEPTH_ZERO_SELF_SIGNED_CERT$/,
  )
})

test('a configuration with an error is reported in one line', async () => {
  const { code, errors } = await doctor('[server]\nprot = 1\n', launcher.newDataDir())
  expect([code, errors]).toEqual([2, expect.stringMatching(/^slipway: .*server\.prot.*\n$/)])
})
