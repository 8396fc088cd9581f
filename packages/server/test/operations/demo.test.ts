import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase } from '@slipway/testing/database.ts'
import { defaultConfig, rows } from '@slipway/testing/fleet.ts'
import { clockOf } from '@slipway/testing/postgres/clock.ts'
import { afterAll, beforeEach, expect, test } from 'vitest'
import type { Config } from '../../src/config/index.ts'
import { isPasswordCorrect } from '../../src/domain/password.ts'
import { digestOf } from '../../src/domain/secret.ts'
import { Database } from '../../src/postgres/database.ts'
import { applyConfig } from '../../src/setup/apply-config.ts'
import { credentialsPath } from '../../src/setup/credentials-file.ts'
import { offerSetupCode, seedDemo } from '../../src/setup/demo.ts'
import { listQuotas } from '../../src/store/compute/quotas.ts'
import { findKeyCaller } from '../../src/store/identity/access.ts'
import { findUserByEmail } from '../../src/store/identity/users.ts'

let store: Awaited<ReturnType<typeof createDatabase>> | undefined
let database: Database
let dataDir = ''
async function close() {
  await database?.close()
  await store?.drop()
  if (dataDir) rmSync(dataDir, { recursive: true, force: true })
}
beforeEach(async () => {
  await close()
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 8 })
  dataDir = mkdtempSync(join(tmpdir(), 'slipway-demo-'))
  await applyConfig(database, defaultConfig())
})
afterAll(close)

const seed = (port = 8080, role: Config['server']['role'] = 'all') => {
  const config = defaultConfig()
  const address = `http://127.0.0.1:${port}`
  return seedDemo(
    { database, config: { ...config, server: { ...config.server, dataDir, role } } },
    { api: `${address}/v0.1`, console: address },
  )
}

const callerOf = (key: string) => findKeyCaller(database, digestOf(key), false)
const readFile = () => JSON.parse(readFileSync(credentialsPath(dataDir), 'utf8'))

test('the demo keeps its URL when another API process starts, and takes the new URL of a server with role all', async () => {
  expect((await seed(8080, 'api'))!.console_url).toBe('http://127.0.0.1:8080')
  expect((await seed(8081, 'api'))!.console_url).toBe('http://127.0.0.1:8081')
  expect(readFile().console_url).toBe('http://127.0.0.1:8080')
  await seed(8082)
  expect(readFile().console_url).toBe('http://127.0.0.1:8082')
})

test('the demo of an empty database has a project with a write key, an operator key, a user, and quotas for the whole fleet', async () => {
  const credentials = (await seed())!
  expect(await callerOf(credentials.access_key)).toMatchObject({
    kind: 'access_key',
    role: 'write',
    projectId: credentials.project_id,
    organizationId: credentials.organization_id,
  })
  expect(await callerOf(credentials.operator_key)).toMatchObject({ kind: 'operator_key' })
  const user = await findUserByEmail(database, credentials.email)
  expect(await isPasswordCorrect(user!.password_hash, credentials.password)).toBe(true)
  const quotas = Object.fromEntries(
    (await listQuotas(database, credentials.project_id)).map(({ name, max }) => [name, max]),
  )
  expect(quotas).toMatchObject({
    a40_gpus: 96,
    a100_gpus: 96,
    'a100-80gb_gpus': 96,
    'l40s-48gb_gpus': 90,
    vms: 378,
  })
})

test('the demo has an operator account, whose password stays the same', async () => {
  const { operator_email, operator_password } = (await seed())!
  const operator = (await findUserByEmail(database, operator_email))!
  expect(operator).toMatchObject({ is_operator: true })
  expect(await isPasswordCorrect(operator.password_hash, operator_password)).toBe(true)
  expect((await seed(8081))!.operator_password).toBe(operator_password)
})

test('the demo is created once when several processes start at the same time, and its credentials file works', async () => {
  await Promise.all([1, 2, 3, 4].map((i) => seed(8080 + i)))
  expect(await rows(database, 'SELECT count(*) AS n FROM organizations')).toEqual([{ n: 1 }])
  expect(await rows(database, 'SELECT count(*) AS n FROM access_keys WHERE revoked_at IS NULL')).toEqual([
    { n: 2 },
  ])
  expect(await callerOf(readFile().access_key)).not.toBeNull()
})

test('the credentials file is readable only by its owner and contains what a client needs', async () => {
  const credentials = await seed()
  expect(statSync(credentialsPath(dataDir)).mode & 0o777).toBe(0o600)
  expect(readFile()).toEqual(credentials)
  expect(Object.keys(readFile()).sort()).toEqual(
    'access_key api_url console_url email operator_email operator_key operator_password organization_id password project_id'.split(
      ' ',
    ),
  )
})

test('the credentials file gets the new URL and keeps its secrets at a later start', async () => {
  const first = (await seed(1111))!
  const second = (await seed(2222))!
  expect(second).toEqual({
    ...first,
    api_url: 'http://127.0.0.1:2222/v0.1',
    console_url: 'http://127.0.0.1:2222',
  })
  expect(readFile()).toEqual(second)
})

test('a deleted credentials file is written again with new secrets, and the old ones are revoked', async () => {
  const first = (await seed())!
  rmSync(credentialsPath(dataDir))
  const second = (await seed())!
  expect(second.project_id).toBe(first.project_id)
  expect(await callerOf(first.access_key)).toBeNull()
  expect(await callerOf(first.operator_key)).toBeNull()
  expect(await callerOf(second.access_key)).not.toBeNull()
  expect(await callerOf(second.operator_key)).not.toBeNull()
  const user = await findUserByEmail(database, second.email)
  expect(await isPasswordCorrect(user!.password_hash, first.password)).toBe(false)
  expect(await isPasswordCorrect(user!.password_hash, second.password)).toBe(true)
})

test('a damaged credentials file is not replaced, and its secrets stay valid', async () => {
  const { access_key } = (await seed())!
  writeFileSync(credentialsPath(dataDir), '{"access_key": 5}')
  await expect(seed()).rejects.toThrow('is damaged')
  expect(readFile()).toEqual({ access_key: 5 })
  expect(await callerOf(access_key)).not.toBeNull()
})

test('the credentials file is not written for a database that was set up without the demo', async () => {
  await database.query({ text: `INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'Mine')` })
  expect(await seed()).toBeNull()
  expect(() => readFile()).toThrow(/ENOENT/)
})

test('the setup code is printed once, and again only when it has expired unused', async () => {
  const codes = await Promise.all([1, 2, 3].map(() => offerSetupCode(database)))
  expect(codes.filter(Boolean)).toHaveLength(1)
  await clockOf((text, values) => database.query({ text, values })).advance('31 days')
  expect(await offerSetupCode(database)).not.toBeNull()
})

test('the setup code is not printed if there is an operator', async () => {
  await seed()
  expect(await offerSetupCode(database)).toBeNull()
})
