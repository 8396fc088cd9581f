import { randomBytes } from 'node:crypto'
import { withDatabase } from '@slipway/testing/database.ts'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'

/** A database with nothing in it. */
export async function emptyDatabase(): Promise<{ url: string; query: pg.Client['query'] }> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const admin = await connect(inject('postgresUrl'))
  await admin.query(`CREATE DATABASE ${name}`)
  const url = withDatabase(inject('postgresUrl'), name)
  const client = await connect(url)
  onTestFinished(async () => {
    await client.end()
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
    await admin.end()
  })
  return { url, query: client.query.bind(client) as pg.Client['query'] }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}
