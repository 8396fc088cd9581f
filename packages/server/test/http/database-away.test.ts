import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { clockOf } from '@slipway/testing/postgres/clock.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { validateResponse } from '@slipway/testing/responses.ts'
import { instantly } from '@slipway/testing/service.ts'
import { Wire } from '@slipway/testing/wire.ts'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/index.ts'
import { Signals } from '../../src/postgres/signals.ts'
import { type Server, startServer } from '../../src/server.ts'
import { seedDemo } from '../../src/setup/demo.ts'

let database: Awaited<ReturnType<typeof createDatabase>>
let wire: Wire
let server: Server
let credentials: NonNullable<Awaited<ReturnType<typeof seedDemo>>>
let direct: pg.Client
let owner: string
const dataDir = mkdtempSync(join(tmpdir(), 'slipway-away-'))

beforeAll(async () => {
  database = await createDatabase()
  wire = new Wire(database.url)
  await wire.restore()
  const config = loadConfig(['--port', '0', '--data-dir', dataDir], {}, () => '')
  instantly(config)
  for (const location of config.locations)
    if (location.engine === 'simulated') location.simulated.bootMs = [800, 800]
  server = await startServer(config, wire.url, pino({ level: 'silent' }))
  credentials = (await seedDemo(
    { database: server.services.database, config },
    { api: server.url, console: '' },
  ))!
  direct = new pg.Client({ connectionString: database.url })
  await direct.connect()
  const { email, password } = credentials
  owner = (await ask('POST', '/v0.1/auth/token', { grant_type: 'password', email, password })).body
    .access_token
})
afterAll(async () => {
  await server.close()
  await wire.cut()
  await direct.end()
  await database.drop()
  rmSync(dataDir, { recursive: true })
})

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${owner}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const type = response.headers.get('content-type') ?? ''
  const parsed = type.startsWith('application/json') ? JSON.parse(text) : text
  validateResponse(method, path, response.status, type, parsed)
  return { status: response.status, headers: response.headers, body: parsed }
}

const endOf = (operationId: string) =>
  eventually(async () => {
    const { body } = await ask('GET', inProject(`/operations/${operationId}?wait=20`))
    return body.state !== 'IN_PROGRESS' && body
  })
const inProject = (rest: string) => `/v0.1/projects/${credentials.project_id}${rest}`

test('requests get 503 while the database is unavailable, and everything resumes automatically when it is back', async () => {
  const created = await ask('POST', inProject('/vms'), vmBody())
  const { operation_id, metadata } = created.body.operation
  await wire.cut()

  const unavailable = { status: 503, body: { code: 'unavailable' } }
  // Access rights may be cached for a moment, but the requested data is not.
  for (let i = 0; i < 5; i++)
    for (const [method, path, body] of [
      ['GET', inProject('/vms'), undefined],
      ['GET', '/v0.1/projects', undefined],
      ['POST', inProject('/vms'), vmBody()],
      ['POST', '/v0.1/auth/token', { grant_type: 'password', email: 'a@b.example', password: 'guess' }],
      ['GET', '/readyz', undefined],
    ] as const) {
      const response = await ask(method, path, body)
      expect(response, path).toMatchObject(unavailable)
      expect(response.headers.get('retry-after'), path).toBe('1')
      expect(JSON.stringify(response.body)).not.toMatch(/127\.0\.0\.1|ECONN|pg|postgres/i)
    }
  expect((await ask('GET', '/healthz')).status).toBe(200)
  expect((await ask('GET', '/metrics')).status).toBe(200)

  await wire.restore()
  await eventually(async () => (await ask('GET', '/readyz')).status === 200)
  const ended = await endOf(operation_id)
  expect(ended).toMatchObject({ state: 'SUCCEEDED' })
  const { body: vm } = await ask('GET', inProject(`/vms/${metadata.id}`))
  expect(vm.state).toBe('STATE_RUNNING')
  expect((await ask('GET', inProject('/vms'))).body.items).toHaveLength(1)
})

test('repeated database outages leave no partial writes', async () => {
  let isOver = false
  const names: string[] = []
  const cuts = (async () => {
    for (let i = 0; i < 6; i++) {
      const before = names.length
      await eventually(async () => names.length > before + 4)
      await wire.cut()
      await wire.restore()
    }
    isOver = true
  })()
  const seen = new Set<number>()
  const write = async (writer: number) => {
    for (let i = 0; !isOver; i++) {
      const name = `${writer}-${i}`
      const body = { name, organization_id: credentials.organization_id }
      await eventually(async () => {
        const { status } = await ask('POST', '/v0.1/projects', body, { 'idempotency-key': name })
        seen.add(status)
        return status === 200
      })
      names.push(name)
    }
  }
  await Promise.all([cuts, ...[0, 1, 2, 3].map(write)])
  expect([...seen].filter((status) => ![200, 409, 503].includes(status))).toEqual([])
  expect(seen).toContain(503)
  const { rows } = await direct.query(
    `SELECT p.name, count(DISTINCT n.id)::int AS networks, count(DISTINCT s.id)::int AS subnets,
              count(DISTINCT f.id)::int AS rules, count(DISTINCT q.name)::int > 0 AS has_quotas,
              (SELECT count(*)::int FROM events_written e WHERE e.project_id = p.id AND e.type = 'project.created') AS events
       FROM projects p LEFT JOIN networks n ON n.project_id = p.id LEFT JOIN subnets s ON s.network_id = n.id
       LEFT JOIN firewall_rules f ON f.project_id = p.id LEFT JOIN quotas q ON q.project_id = p.id
       WHERE p.id <> $1 GROUP BY p.id`,
    [credentials.project_id],
  )
  expect(rows.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  for (const { name, ...parts } of rows)
    expect(parts, name).toEqual({ networks: 1, subnets: 3, rules: 4, has_quotas: true, events: 1 })
})

test('the server listens for wake-ups again after a database outage', async () => {
  const [listener, sender] = [new Signals(wire.url), new Signals(database.url)]
  await Promise.all([listener.open(), sender.open()])
  let received = 0
  listener.on('events', () => received++)
  await wire.cut()
  await wire.restore()
  const receivedByReconnecting = await eventually(async () => received)
  await eventually(async () => {
    sender.send('events')
    return received > receivedByReconnecting
  })
  await Promise.all([listener.close(), sender.close()])
})

test('a creation whose commit succeeded without a response is looked up and happens once', async () => {
  const body = vmBody()
  const headers = { 'idempotency-key': body.name }
  wire.cutAtCommitOf(body.name, true)
  const { status, body: first } = await ask('POST', inProject('/vms'), body, headers)
  expect(status).toBe(200)
  const { body: again } = await ask('POST', inProject('/vms'), body, headers)
  expect(again).toEqual(first)
  // No process knows that the operation has started, so a worker resumes it when its lease has expired.
  await clockOf((text, values) => direct.query(text, values)).advance('1 minute')
  const { operation_id, metadata } = first.operation
  const ended = await endOf(operation_id)
  expect(ended).toMatchObject({ state: 'SUCCEEDED', result: { id: metadata.id, name: body.name } })
  expect(await vmsCalled(body.name)).toBe(1)
})

test('a creation whose commit did not reach the database fails with 503, and succeeds when it is repeated', async () => {
  const body = vmBody()
  const headers = { 'idempotency-key': body.name }
  wire.cutAtCommitOf(body.name, false)
  const refused = await ask('POST', inProject('/vms'), body, headers)
  expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } })
  expect(await vmsCalled(body.name)).toBe(0)
  // The first request is in progress until PostgreSQL notices that the client has disconnected.
  const again = await eventually(async () => {
    const response = await ask('POST', inProject('/vms'), body, headers)
    // Any other conflict would mean that part of the request was written.
    if (response.status === 409) expect(response.body.message).toContain('is still in progress')
    return response.status !== 409 && response
  })
  expect(again.status).toBe(200)
  expect(await vmsCalled(body.name)).toBe(1)
})

async function vmsCalled(name: string): Promise<number> {
  const { rows } = await direct.query('SELECT count(*)::int AS count FROM vms WHERE name = $1', [name])
  return rows[0].count
}
