import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { validateResponse } from '@slipway/testing/responses.ts'
import { instantly } from '@slipway/testing/service.ts'
import { Wire } from '@slipway/testing/wire.ts'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { loadConfig } from '../../src/config/index.ts'
import { type Server, startServer } from '../../src/server.ts'
import { seedDemo } from '../../src/setup/demo.ts'

let database: Awaited<ReturnType<typeof createDatabase>>
let wire: Wire
let server: Server
let credentials: NonNullable<Awaited<ReturnType<typeof seedDemo>>>
const dataDir = mkdtempSync(join(tmpdir(), 'slipway-trouble-'))

beforeAll(async () => {
  // The test decides when a response is overdue.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  database = await createDatabase()
  wire = new Wire(database.url)
  await wire.restore()
  const config = loadConfig(['--port', '0', '--data-dir', dataDir], {}, () => '')
  instantly(config)
  server = await startServer(config, wire.url, pino({ level: 'silent' }))
  const url = { api: server.url, console: '' }
  credentials = (await seedDemo({ database: server.services.database, config }, url))!
})
afterAll(async () => {
  await server.close()
  await wire.cut()
  vi.useRealTimers()
  await database.drop()
  rmSync(dataDir, { recursive: true })
})

/** Writes even while the database is read-only by default. */
const sql = (text: string) =>
  query({ connectionString: database.url, options: '-c default_transaction_read_only=off' }, text)
const inProject = (rest: string) => `/v0.1/projects/${credentials.project_id}${rest}`

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${credentials.access_key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer = { status: response.status, body: JSON.parse(await response.text()) }
  validateResponse(method, path, answer.status, 'application/json', answer.body)
  return answer
}

const createVm = (body = vmBody()) => ask('POST', inProject('/vms'), body, { 'idempotency-key': body.name })
const unavailable = (message: RegExp) => ({
  status: 503,
  body: { code: 'unavailable', message: expect.stringMatching(message) },
})

test('while all connections are silent, readiness fails in time, and afterwards the same process serves again', async () => {
  expect((await ask('GET', '/readyz')).status).toBe(200)
  await createVm()
  wire.stall()
  const body = vmBody()
  const writes = [createVm(body), createVm()]
  const reads = [ask('GET', inProject('/vms')), ask('GET', inProject('/disks'))]
  // The deadline is that of the check itself, because nothing else can end the check while the database is silent.
  expect(await ask('GET', '/readyz')).toMatchObject(unavailable(/temporarily unavailable/))
  expect((await ask('GET', '/healthz')).status).toBe(200)
  wire.silence()
  // The first check only records what was received before.
  vi.advanceTimersByTime(25_000)
  // Every request gets a response. A request that was waiting for a connection may have got a new one.
  for (const answer of await Promise.all([...writes, ...reads]))
    if (answer.status !== 200) expect(answer).toMatchObject(unavailable(/unavailable|unknown/))
  await eventually(async () => (await ask('GET', '/readyz')).status === 200)
  const { status, body: created } = await eventually(async () => {
    const answer = await createVm(body)
    return answer.status !== 409 && answer
  })
  expect(status).toBe(200)
  await eventually(async () => {
    const { operation_id } = created.operation
    return (await ask('GET', inProject(`/operations/${operation_id}`))).body.state === 'SUCCEEDED'
  })
})

test('a read-only database is reported as such, and new connections are opened until one accepts writes', async () => {
  await createVm()
  const name = new URL(database.url).pathname.slice(1)
  await sql(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
  wire.drop()
  await eventually(async () => /is read-only/.test((await createVm()).body.message))
  expect(await ask('GET', '/readyz')).toMatchObject(unavailable(/is read-only/))
  expect((await ask('GET', inProject('/vms'))).status).toBe(200)
  // Existing sessions stay read-only. Only new connections see the change.
  await sql(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
  await eventually(async () => (await ask('GET', '/readyz')).status === 200)
  await eventually(async () => (await createVm()).status === 200)
})

test.each([
  ['53100', /out of disk space/],
  ['25P03', /idle for too long/],
  ['57014', /did not finish a statement in time/],
])('a write that PostgreSQL refuses with %s says why, and ends its connection', async (code, message) => {
  await createVm()
  await sql(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '${code}'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON readiness EXECUTE FUNCTION refuse();
    CREATE TRIGGER refuse BEFORE INSERT ON vms EXECUTE FUNCTION refuse()`)
  const ended = new Promise((resolve) => server.services.database.pool.once('remove', resolve))
  expect(await createVm()).toMatchObject(unavailable(message))
  await ended
  expect(await ask('GET', '/readyz')).toMatchObject(unavailable(message))
  await sql('DROP FUNCTION refuse CASCADE')
  expect((await createVm()).status).toBe(200)
})

test('a request whose commit may have happened says so, and is safe to repeat', async () => {
  const body = vmBody()
  wire.cutAtCommitOf(body.name, false)
  const { status, body: error } = await createVm(body)
  expect(status).toBe(503)
  expect(error).toMatchObject({ code: 'unavailable', details: { outcome: 'unknown' } })
  expect(error.message).toContain('same Idempotency-Key')
  const again = await eventually(async () => {
    const answer = await createVm(body)
    return answer.status !== 409 && answer
  })
  expect(again.status).toBe(200)
})
