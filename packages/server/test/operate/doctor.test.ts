import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase, query } from '@slipway/testing/database.ts'
import { Launcher } from '@slipway/testing/launcher.ts'
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

/** Examines in this process: a process of its own takes longer than its checks. */
async function examine(dataDir: string, config: string, env: NodeJS.ProcessEnv = {}) {
  const args = ['--no-demo', '--data-dir', dataDir, '--config', configFile(config)]
  const output = findingLines(
    await examineService(loadConfig(args, env, (path) => readFileSync(path, 'utf8'))),
  )
  /** The verdict and the text of the first finding of a step. */
  const finding = (step: string) => {
    const line = output.split('\n').find((each) => each.slice(9).startsWith(`${step} `))
    return line && `${line.slice(0, 7).trim()}: ${line.slice(9 + step.length).trim()}`
  }
  return { output, finding }
}

function writeCertificate(days: number): { cert: string; key: string } {
  const [cert, key] = [join(launcher.dir, `cert-${days}.pem`), join(launcher.dir, `key-${days}.pem`)]
  const subject = ['-subj', '/CN=gpu.example.com', '-addext', 'subjectAltName=DNS:gpu.example.com']
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
  expect(before.output).toMatch(/\nNothing is missing\.\n$/)

  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'secret.key'), `${'ab'.repeat(32)}\n`)
  chmodSync(join(dataDir, 'secret.key'), 0o644)
  const open = await doctor(location, dataDir)
  expect(open.code).toBe(1)
  expect(open.output).toMatch(/^missing +secret key +other users can read .*\n +→ chmod 600/m)
  expect(open.output).toMatch(/\nMissing: 1\.\n$/)
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
  expect(found.finding('data directory')).toMatch(/^missing: other users can write to/)
  expect(found.output).toMatch(/synchronous_commit is off.*\n +→ set synchronous_commit = on/)
  expect(found.output).toMatch(/the service logs in as a superuser/)
  expect(found.finding('secret key')).toMatch(/^missing: .*does not exist, but secrets are encrypted/)
  expect(found.finding('TLS')).toMatch(/^warning: .* expires in [45] days/)
  expect(found.finding('locations')).toMatch(/^warning: none/)
  expect(found.finding('webhook egress')).toMatch(/^missing: none of 1 webhooks accepts a connection/)
  expect(found.finding('single sign-on company')).toMatch(/^missing: .*cannot be reached/)
  expect(found.output).not.toContain(new URL(database.url).password)

  writeFileSync(join(dataDir, 'secret.key'), `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  expect((await examine(dataDir, config, env)).finding('secret key')).toMatch(
    /^missing: .* but secrets are encrypted with 0123456789abcdef$/,
  )
  const other = config.replace('gpu.example.com', 'other.example.com')
  expect((await examine(dataDir, other, env)).finding('TLS')).toMatch(/is not for other\.example\.com$/)
  const plain = '[server]\nhost = "0.0.0.0"\n'
  expect((await examine(dataDir, plain, env)).finding('TLS')).toMatch(/^missing: .*without TLS/)

  const dead = `postgresql://slipway:secret-word@127.0.0.1:${port}/slipway`
  const away = await examine(dataDir, plain, { DATABASE_URL: dead })
  expect(away.output).toMatch(/^missing +database +no server is writable$/m)
  expect(away.output).not.toContain('secret-word')
  await database.drop()
}, 120_000)

test('a configuration with an error is reported in one line', async () => {
  const { code, errors } = await doctor('[server]\nprot = 1\n', launcher.newDataDir())
  expect([code, errors]).toEqual([2, expect.stringMatching(/^slipway: .*server\.prot.*\n$/)])
})
