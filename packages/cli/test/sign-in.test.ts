import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { URI } from 'otpauth'
import { expect, test } from 'vitest'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()
const contextFile = join(cli.home, 'config/slipway/contexts.json')

/** Calls the service without the CLI. */
async function post(path: string, body: object, token?: string) {
  const response = await fetch(`${cli.server.api_url}/v0.1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
  return (await response.json()) as Record<string, string> & { recovery_codes: string[] }
}
const sessions = async (token: string) => {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${cli.server.api_url}/v0.1/auth/sessions`, { headers })
  return (await response.json()) as { items: { is_current: boolean; has_second_factor: boolean }[] }
}
const logIn = (...words: string[]) => {
  const { api_url, email, password } = cli.server
  const login = ['login', '--api-url', api_url, '--email', email, '--password-stdin', ...words]
  return cli.runAs(login, { input: `${password}\n` })
}
const caller = async () => JSON.parse((await cli.runAs(['whoami', '-o', 'json'])).stdout).caller
const accessToken = () => JSON.parse(readFileSync(contextFile, 'utf8')).contexts.default.session.accessToken

test('login requires a two-factor code after two-factor authentication has been set up, and accepts each code only once', async () => {
  const { email, password } = cli.server
  expect(await logIn()).toMatchObject({ code: 0 })
  expect(await caller()).toMatchObject({ email, has_totp: false })
  const { access_token } = await post('auth/token', { grant_type: 'password', email, password })
  const { otpauth_uri } = await post('auth/totp', { current_password: password }, access_token)
  const { recovery_codes } = await post(
    'auth/totp/confirm',
    { code: URI.parse(otpauth_uri!).generate() },
    access_token,
  )

  const without = await logIn()
  expect(without).toMatchObject({ code: 5, stdout: '' })
  expect(without.stderr).toContain('--totp')
  expect(await logIn('--totp', '000000')).toMatchObject({ code: 5 })
  expect(await logIn('--totp', recovery_codes[0]!)).toMatchObject({ code: 0 })
  expect(await caller()).toMatchObject({ email, has_totp: true })
  expect(await logIn('--totp', recovery_codes[0]!)).toMatchObject({ code: 5 })
})

test('a login is one of the user’s sessions until logout', async () => {
  const { items } = await sessions(accessToken())
  expect(items.filter(({ is_current }) => is_current)).toMatchObject([{ has_second_factor: true }])
  const token = accessToken()
  expect(await cli.runAs(['logout'])).toMatchObject({ code: 0 })
  expect(await sessions(token)).toMatchObject({ code: 'unauthenticated' })
})

test("an operator can remove a user's two-factor authentication", async () => {
  expect(await cli.slipway('admin', 'user', 'remove-totp', cli.server.email)).toMatchObject({ code: 0 })
  expect(await logIn()).toMatchObject({ code: 0 })
  expect(await caller()).toMatchObject({ has_totp: false })
})
