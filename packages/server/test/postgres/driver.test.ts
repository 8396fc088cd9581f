import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createDatabase } from '@slipway/testing/database.ts'
import { root } from '@slipway/testing/root.ts'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { Database } from '../../src/postgres/database.ts'
import { JoinedSocket } from '../../src/postgres/joined-socket.ts'
import { sendStatement } from '../../src/postgres/prepared.ts'

// prepared.ts, joined-socket.ts and connections.ts in src/postgres use undocumented parts of the driver. Before
// upgrading the driver, check these files against the new version, then change the version here.
const knownVersion = '8.23.1'

test('the driver is pinned to the version whose private parts are known', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'packages/server/package.json'), 'utf8'))
  expect(dependencies.pg).toBe(knownVersion)
  expect(createRequire(import.meta.url)('pg/package.json').version).toBe(knownVersion)
})

test('the driver has every private part that prepared statements use', async () => {
  const store = await createDatabase()
  onTestFinished(() => store.drop())
  const database = new Database({ url: store.url, poolSize: 1 })
  onTestFinished(() => database.close())
  const client = await database.pool.connect()
  onTestFinished(() => client.release())
  const { connection } = client as unknown as { connection: Record<string, unknown> & { stream: unknown } }
  for (const method of ['parse', 'bind', 'describe', 'execute', 'sync'])
    expect(connection[method], `connection.${method}`).toBeTypeOf('function')
  for (const field of ['parsedStatements', 'submittedNamedStatements'])
    expect(connection[field], `connection.${field}`).toBeTypeOf('object')
  expect(connection.stream).toBeInstanceOf(JoinedSocket)
  expect((pg as unknown as { utils: Record<string, unknown> }).utils.prepareValue).toBeTypeOf('function')
  // The driver calls these methods of a query. Our class has the prototype of the driver's class, so that the driver
  // accepts it.
  for (const method of ['submit', 'handleRowDescription', 'handleDataRow', 'handleCommandComplete'])
    expect(Reflect.get(pg.Query.prototype, method), `Query.${method}`).toBeTypeOf('function')
  for (const method of ['handleError', 'handleReadyForQuery', 'handleEmptyQuery'])
    expect(Reflect.get(pg.Query.prototype, method), `Query.${method}`).toBeTypeOf('function')
  // A response is due while the client is not ready.
  const isReady = () => Reflect.get(client, 'readyForQuery')
  expect(isReady()).toBe(true)
  const asked = sendStatement(client, { text: 'SELECT 1' })
  expect(isReady()).toBe(false)
  await asked
  expect(isReady()).toBe(true)
  // The driver itself records which statements a connection has prepared.
  await sendStatement(client, { name: 'noted', text: 'SELECT 1' })
  expect(connection).toMatchObject({ parsedStatements: { noted: 'SELECT 1' }, submittedNamedStatements: {} })
})
