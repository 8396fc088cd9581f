import { addUser, password } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

/** A session ends at its maximum age, even if it is refreshed. */

let service: TestService
let email: string
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.close())
beforeEach(async () => {
  await service.clock.reset()
  email = (await addUser(service.database)).email
})

const signIn = () =>
  service.ok('authToken', { token: null, body: { grant_type: 'password', email, password } })
const refresh = (refresh_token: string) =>
  service.call('authToken', { token: null, body: { grant_type: 'refresh_token', refresh_token } })

test('a session that is refreshed every week ends after 30 days, and so do its latest tokens', async () => {
  let { refresh_token } = await signIn()
  for (let week = 1; week <= 4; week++) {
    await service.clock.advance('7 days')
    const { status, body } = await refresh(refresh_token)
    expect([status, body.expires_in]).toEqual([200, 3600])
    refresh_token = body.refresh_token
  }
  await service.clock.advance('47 hours 50 minutes')
  const last = (await refresh(refresh_token)).body
  expect(last.expires_in).toBeGreaterThan(500)
  expect(last.expires_in).toBeLessThanOrEqual(600)
  const token = last.access_token
  expect((await service.call('rootGet', { token })).status).toBe(200)
  const { items } = await service.ok('authSessionList', { token })
  expect(items).toHaveLength(1)
  expect(Date.parse(items[0]!.expires_at) - Date.parse(items[0]!.created_at)).toBe(30 * 86_400_000)
  await service.clock.advance('11 minutes')
  // Clears the cache of callers, which uses the clock of the process.
  service.server.services.signals.send('access')
  expect((await service.call('rootGet', { token })).status).toBe(401)
  expect(await refresh(last.refresh_token)).toMatchObject({ status: 400, body: { code: 'invalid_grant' } })
})

test('the operator can configure the maximum session age', async () => {
  const { signIn: config } = service.server.services.config
  config.sessionDays = 2
  const { refresh_token } = await signIn()
  config.sessionDays = 30
  await service.clock.advance('47 hours')
  const { status, body } = await refresh(refresh_token)
  expect(status).toBe(200)
  await service.clock.advance('2 hours')
  expect((await refresh(body.refresh_token)).status).toBe(400)
})
