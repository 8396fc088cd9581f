import { addUser, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSession } from '../../src/accounts/sessions.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

test('a user has at most 100 sessions, and a new one replaces the least recently used session', async () => {
  const user = await addUser(service.database)
  const tokens: string[] = []
  for (let i = 0; i < 101; i++) tokens.push(await tokenOf(service.database, user))
  const status = async (token: string) => (await service.call('authSessionList', { token })).status
  expect(await status(tokens[0]!)).toBe(401)
  expect(await status(tokens[1]!)).toBe(200)
  const { items } = await service.ok('authSessionList', { token: tokens[100]! })
  expect(items).toHaveLength(100)
})

test('a session keeps its newest 1,000 spent refresh tokens', async () => {
  const user = await addUser(service.database)
  const { refresh_token } = await service.database.transaction((tx) =>
    startSession(tx, user.id, { maxAgeS: 86_400 }),
  )
  const family = 'SELECT id FROM token_families WHERE user_id = $1'
  await service.sql(
    `INSERT INTO refresh_tokens (token_hash, family_id, expires_at, spent_at)
     SELECT sha256(n::text::bytea), (${family}), slipway_now() + interval '1 day', slipway_now() - n * interval '1 minute'
     FROM generate_series(1, 1200) n`,
    [user.id],
  )
  const body = { grant_type: 'refresh_token', refresh_token }
  const { refresh_token: next } = await service.ok('authToken', { token: null, body })
  const [counts] = await service.sql(
    `SELECT count(*)::int AS all, count(*) FILTER (WHERE spent_at IS NULL)::int AS unspent
     FROM refresh_tokens WHERE family_id = (${family})`,
    [user.id],
  )
  expect(counts).toEqual({ all: 1001, unspent: 1 })
  await service.ok('authToken', { token: null, body: { grant_type: 'refresh_token', refresh_token: next } })
})
