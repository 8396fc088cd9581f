import { addUser, password, someEmail } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Queue } from '../../src/domain/sign-in/queue.ts'

/** Neither the response nor the amount of work reveals whether an e-mail address has an account. */

/** Every password hash passes through this queue. */
const hashings = vi.spyOn(Queue.prototype, 'inTurn')

let service: TestService
beforeAll(async () => {
  service = await startService()
  // The placeholder hash for accounts without a password is computed on first use.
  await signIn(someEmail(), 'warm up')
})
afterAll(async () => {
  hashings.mockRestore()
  await service?.close()
})

const signIn = (email: string, word: string) =>
  service.call('authToken', { token: null, body: { grant_type: 'password', email, password: word } })

async function workOf(request: () => Promise<{ status: number; body: unknown }>) {
  hashings.mockClear()
  const { status, body } = await request()
  const { request_id: _, ...response } = body as { request_id?: string }
  return { status, response, hashings: hashings.mock.calls.length }
}

test('a wrong password costs one hash and gets the same response, whether or not the e-mail address has an account', async () => {
  const known = await addUser(service.database)
  const suspended = await addUser(service.database)
  await service.sql('UPDATE users SET suspended_at = slipway_now() WHERE id = $1', [suspended.id])
  const withoutPassword = await addUser(service.database)
  await service.sql('UPDATE users SET password_hash = NULL WHERE id = $1', [withoutPassword.id])
  const expected = await workOf(() => signIn(known.email, 'wrong password'))
  expect(expected.status).toBe(400)
  expect(expected.hashings).toBe(1)
  for (const email of [someEmail('nobody'), suspended.email, withoutPassword.email])
    expect(await workOf(() => signIn(email, 'wrong password')), email).toEqual(expected)
  expect(await workOf(() => signIn(suspended.email, password))).toEqual(expected)
})

test('requesting a password reset computes no hash and gets the same response, whether or not the e-mail address has an account', async () => {
  const { email } = await addUser(service.database)
  const forgot = (address: string) =>
    workOf(() => service.call('authForgot', { token: null, body: { email: address } }))
  const expected = await forgot(email)
  expect(expected.hashings).toBe(0)
  expect(await forgot(someEmail('nobody'))).toEqual(expected)
})
