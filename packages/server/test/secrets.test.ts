import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase, query, type TestDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { type Credentials, credentialsOf, Launcher, readyLine } from '@slipway/testing/launcher.ts'
import { startReceiver, verify } from '@slipway/testing/webhook-receiver.ts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { secretKeyOf } from '../src/domain/secret-key.ts'
import { familyClient, type SigningKey } from './family/client.ts'

const launcher = new Launcher()
const dataDir = launcher.newDataDir('first')
const keyFile = join(dataDir, 'secret.key')
const configFile = join(launcher.dir, 'slipway.toml')
let database: TestDatabase
let credentials: Credentials
let token: string
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const start = (directory: string) =>
  launcher.start(['--port', '0', '--data-dir', directory, '--config', configFile], {
    env: { DATABASE_URL: database.url },
  })
const idsInFile = () =>
  readFileSync(keyFile, 'utf8')
    .trim()
    .split('\n')
    .map((line) => secretKeyOf(Buffer.from(line, 'hex')).id)
const idsInStore = async () => {
  const rows = await query<{ id: string }>(
    database.url,
    `SELECT DISTINCT encode(substring(sealed FROM 1 FOR 8), 'hex') AS id
     FROM (SELECT sealed FROM webhook_secrets
           UNION ALL SELECT signing_sealed FROM access_keys WHERE signing_sealed IS NOT NULL) all_secrets`,
  )
  return rows.map(({ id }) => id)
}
async function post<T>(path: string, body: object, bearer: string | null = token): Promise<T> {
  const response = await fetch(`${credentials.api_url}/v0.1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(bearer && { authorization: `Bearer ${bearer}` }) },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(200)
  return (await response.json()) as T
}

beforeAll(async () => {
  database = await createDatabase()
  writeFileSync(
    configFile,
    '[server]\nfamily_api = true\n[webhooks]\nallow_private_ranges = ["127.0.0.0/8"]\n',
  )
  await start(dataDir).until(readyLine)
  credentials = credentialsOf(dataDir)
  const { email, password } = credentials
  const session = { grant_type: 'password', email, password }
  token = (await post<{ access_token: string }>('/auth/token', session, null)).access_token
})
afterAll(async () => {
  vi.resetConfig()
  await launcher.clear()
  await database?.drop()
})

test('a process without the key of its database refuses to start and creates no other key', async () => {
  const directory = launcher.newDataDir('second')
  const missing = await start(directory).ended()
  expect(missing.code).toBe(2)
  expect(missing.errors).toContain(`encrypted with the secret key ${idsInFile()[0]}`)
  expect(missing.errors).toContain('Restore the file from a backup')
  const file = join(directory, 'secret.key')
  expect(existsSync(file)).toBe(false)

  mkdirSync(directory, { recursive: true })
  writeFileSync(file, 'ab'.repeat(32))
  const wrong = await start(directory).ended()
  expect(wrong.code).toBe(2)
  expect(wrong.errors).toContain(`encrypted with the secret key ${idsInFile()[0]}`)
  expect(readFileSync(file, 'utf8')).toBe('ab'.repeat(32))
  expect(missing.errors + wrong.errors).not.toContain(readFileSync(keyFile, 'utf8').trim())
})

test.each([
  ['{"api_url": "http://127', 'it is not a JSON object'],
  ['{"api_url": "http://127.0.0.1:1"}', 'it lacks console_url'],
])('a damaged credentials.json stops the start and is left unchanged: %s', async (text, problem) => {
  const directory = launcher.newDataDir('damaged')
  const file = join(directory, 'credentials.json')
  mkdirSync(directory, { recursive: true })
  writeFileSync(file, text)
  const { code, errors } = await start(directory).ended()
  expect(code).toBe(2)
  expect(errors).toContain(`${file} is damaged: ${problem}`)
  expect(readFileSync(file, 'utf8')).toBe(text)
})

test('webhook secrets and signing keys are encrypted, and rotating the key interrupts neither', async () => {
  const key = { name: 'signer', role: 'read', kind: 'signing' }
  const signer = await post<SigningKey>(`/projects/${credentials.project_id}/access-keys`, key)
  const send = familyClient({ url: credentials.api_url }, signer)
  const receiver = await startReceiver()
  const webhooks = `/projects/${credentials.project_id}/webhooks`
  const { id, secret } = await post<{ id: string; secret: string }>(webhooks, { url: receiver.url })
  const stored = await query(database.url, "SELECT encode(sealed, 'escape') FROM webhook_secrets")
  expect(stored).toHaveLength(1)
  expect(JSON.stringify(stored)).not.toContain(secret.slice(6))
  const receivedSigned = async () => {
    const before = receiver.received.length
    await post(`${webhooks}/${id}/test`, {})
    const received = await eventually(() =>
      receiver.received.slice(before).find(({ body }) => body.type === 'webhook.test'),
    )
    verify(secret, received)
    expect((await send('GET', '/v1/locations')).status).toBe(200)
  }
  await receivedSigned()

  const [old] = idsInFile()
  expect(await idsInStore()).toEqual([old])
  const rotation = launcher.start(['secrets', 'rotate', '--data-dir', dataDir, '--config', configFile], {
    env: { DATABASE_URL: database.url },
  })
  const { code, output } = await rotation.ended()
  expect(code).toBe(0)
  const [fresh, previous, ...older] = idsInFile()
  expect([previous, ...older]).toEqual([old])
  expect(output).toContain(`${fresh}`)
  expect(statSync(keyFile).mode & 0o777).toBe(0o600)
  expect(await idsInStore()).toEqual([fresh])
  // Running processes decrypt and encrypt with the new key.
  await receivedSigned()
  await post(`${webhooks}/${id}/rotate-secret`, {})
  expect(await idsInStore()).toEqual([fresh])

  const behind = launcher.newDataDir('behind')
  const oldFile = join(launcher.dir, 'old.key')
  writeFileSync(oldFile, readFileSync(keyFile, 'utf8').split('\n')[1]!)
  const refused = launcher.start(['--port', '0', '--data-dir', behind, '--config', configFile], {
    env: { DATABASE_URL: database.url, SLIPWAY_SECRET_KEY_FILE: oldFile },
  })
  const ended = await refused.ended()
  expect(ended).toMatchObject({ code: 2 })
  expect(ended.errors).toContain(`${fresh}`)
})
