import { createServer } from 'node:net'
import { createDatabase, query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { freePort } from '@slipway/testing/port.ts'
import { expect, onTestFinished, test } from 'vitest'
import { Database, isDatabaseUnavailable } from '../../src/postgres/database.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { DatabaseServers } from '../../src/postgres/servers.ts'
import { Signals } from '../../src/postgres/signals.ts'

const nameOf = (url: string) => new URL(url).pathname.slice(1)
const current = { text: 'SELECT current_database() AS name' }

/** Two databases represent two servers: one that is read-only looks like a standby. */
async function openServers() {
  const [one, two] = [await createDatabase(), await createDatabase()]
  const setReadOnly = async (url: string, isReadOnly: boolean) => {
    // The statement needs a writable session in a database whose sessions are read-only.
    const connection = { connectionString: url, options: '-c default_transaction_read_only=off' }
    const name = nameOf(url)
    await query(
      connection as never,
      `ALTER DATABASE ${name} SET default_transaction_read_only = ${isReadOnly}`,
    )
    await query(
      connection as never,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()`,
      [name],
    )
  }
  onTestFinished(async () => {
    await one.drop()
    await two.drop()
  })
  return { one: one.url, two: two.url, setReadOnly }
}

test('connections go to the first server that is the primary, and move when another one becomes it', async () => {
  const { one, two, setReadOnly } = await openServers()
  await setReadOnly(one, true)
  const dead = `postgresql://slipway@127.0.0.1:${await freePort()}/slipway`
  const servers = new DatabaseServers([dead, one, two])
  await migrate(servers)
  const signals = new Signals(servers)
  await signals.open()
  const lost: Error[] = []
  const database = new Database({ url: servers, poolSize: 2, signals, onError: (error) => lost.push(error) })
  onTestFinished(async () => {
    await signals.close()
    await database.close()
  })
  expect((await database.query(current)).rows).toEqual([{ name: nameOf(two) }])

  await setReadOnly(one, false)
  await setReadOnly(two, true)
  const moved = await eventually(async () => {
    const result = await database.query(current).catch((error) => {
      expect(isDatabaseUnavailable(error)).toBe(true)
    })
    return result?.rows
  })
  expect(moved).toEqual([{ name: nameOf(one) }])

  // Listeners move to the other server as well.
  const other = new Signals(one)
  await other.open()
  onTestFinished(() => other.close())
  const received: (string[] | undefined)[] = []
  signals.on('ended', (ids) => received.push(ids))
  await eventually(() => {
    other.send('ended', 'an-id')
    return received.some((ids) => ids?.includes('an-id'))
  })
})

test('without a primary, every server is tried, and the error names the reason', async () => {
  const { one, two, setReadOnly } = await openServers()
  await setReadOnly(one, true)
  await setReadOnly(two, true)
  const error = await migrate(new DatabaseServers([one, two])).catch((reason) => reason)
  expect(error.message).toMatch(/is not the primary of the database$/)
  expect(isDatabaseUnavailable(error)).toBe(true)
  await setReadOnly(two, false)
  await migrate(new DatabaseServers([one, two]))
})

test('a single server is used even if it is read-only', async () => {
  const { one, setReadOnly } = await openServers()
  await setReadOnly(one, true)
  const database = new Database({ url: one, poolSize: 1 })
  onTestFinished(() => database.close())
  expect((await database.query(current)).rows).toEqual([{ name: nameOf(one) }])
})

test('a connection that breaks as soon as it is open fails its statement, and nothing else', async () => {
  const message = (type: string, ...parts: (string | Buffer)[]) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part)))
    const length = Buffer.alloc(4)
    length.writeInt32BE(body.length + 4)
    return Buffer.concat([Buffer.from(type), length, body])
  }
  // PostgreSQL accepts the connection and ends it in the same piece of data.
  const greeting = [message('R', Buffer.alloc(4)), message('Z', 'I')]
  const ended = message('E', 'SFATAL\0', 'C57P01\0', 'Mterminating connection\0', '\0')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([...greeting, ended])))
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `postgresql://slipway@127.0.0.1:${port}/slipway`
  const database = new Database({ url, poolSize: 1, onError: () => {} })
  onTestFinished(() => database.close())
  const error = await database.query(current).catch((thrown) => thrown)
  expect(isDatabaseUnavailable(error)).toBe(true)
})
