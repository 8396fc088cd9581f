import { clientSecret, type OidcStand, startOidcStand } from '@slipway/testing/oidc-stand.ts'
import { addOrganization, addUser, password, someEmail, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

/** A provider's token proves its subject, to this service and for a limited time, but not an e-mail address. */

let service: TestService
let stand: OidcStand
let count = 0

beforeAll(async () => {
  service = await startService()
  stand = await startOidcStand(() => `${service.url}/v0.1/auth/oidc/company/callback`)
  // The provider and the service need each other's address.
  service.server.services.config.oidc.push({
    name: 'company',
    issuer: stand.issuer,
    clientId: 'slipway',
    clientSecretEnv: 'X',
    clientSecret,
    allowedDomains: ['example.com'],
    organization: 'Company',
    roleClaim: 'groups',
    roles: { founders: 'owner', 'gpu-admins': 'admin', ml: 'member' },
    maxAgeHours: 24,
  })
})
afterAll(async () => {
  await stand?.close()
  await service?.close()
})
beforeEach(() => {
  const sub = `subject-${++count}`
  stand.account = { sub, email: `${sub}@example.com`, email_verified: true, groups: [] }
  stand.claims = {}
  stand.givesRefreshTokens = false
  stand.refreshes = 0
  stand.isGone = false
  stand.isDown = false
})

type Jar = Map<string, string>

/** Follows redirects with cookies, as a browser would, until it reaches a console page. */
async function visit(start: string, jar: Jar = new Map()): Promise<{ path: string; jar: Jar }> {
  for (let url = new URL(start), hops = 0; hops < 15; hops++) {
    if (url.origin === service.url && !url.pathname.startsWith('/v0.1/'))
      return { path: url.pathname + url.search, jar }
    const cookie = [...jar.values()].join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    keepCookies(jar, response)
    const location = response.headers.get('location')
    if (!location) throw new Error(`${url} returned ${response.status}: ${await response.text()}`)
    url = new URL(location, url)
  }
  throw new Error('too many redirects')
}

const begin = () => `${service.url}/v0.1/auth/oidc/company`

const keepCookies = (jar: Jar, response: Response) => {
  for (const line of response.headers.getSetCookie()) {
    const pair = line.split(';')[0]!
    jar.set(pair.split('=')[0]!, pair)
  }
}

/** Refreshes the console session of a visit, as each page does. */
async function refreshIn(jar: Jar): Promise<{ status: number; token: string }> {
  const response = await fetch(`${service.url}/_console/session`, {
    method: 'POST',
    headers: { cookie: [...jar.values()].join('; '), origin: service.url },
  })
  keepCookies(jar, response)
  const { access_token = '' } = (await response.json()) as { access_token?: string }
  return { status: response.status, token: access_token }
}

async function signIn() {
  const { path, jar } = await visit(begin())
  expect(path).toBe('/')
  const { token } = await refreshIn(jar)
  return { token, caller: (await service.ok('rootGet', { token })).caller, jar }
}
const refused = async () => expect((await visit(begin())).path).toBe('/sign-in?sso=refused')

test('each subject of a provider gets its own account, which is the same at each sign-in', async () => {
  const first = await signIn()
  expect(first.caller).toMatchObject({ kind: 'user', email: stand.account.email, is_operator: false })
  stand.account.email = 'renamed@example.com'
  const second = await signIn()
  expect(second.caller).toMatchObject({ id: first.caller.id, email: 'renamed@example.com' })
  stand.account = { ...stand.account, sub: `${stand.account.sub}-other` }
  expect((await signIn()).caller.id).not.toBe(first.caller.id)
  expect((await service.ok('authOidcList', { token: null })).items).toEqual([{ name: 'company' }])
})

test('single sign-on never links an account by its e-mail address', async () => {
  const victim = await addUser(service.database, { email: someEmail('victim') })
  stand.account.email = victim.email
  const { caller, token } = await signIn()
  expect(caller.id).not.toBe(victim.id)
  // The session of single sign-on does not reach the victim's account, even with the victim's password.
  const change = { current_password: password, new_password: 'a fresh passphrase' }
  expect((await service.call('authPassword', { token, body: change })).status).toBe(400)
  const totp = { current_password: password }
  expect((await service.call('authTotpCreate', { token, body: totp })).status).toBe(400)
  const grant = { grant_type: 'password', email: victim.email, password }
  expect((await service.call('authToken', { token: null, body: grant })).status).toBe(200)
})

const link = async (token: string) => {
  const response = await service.call('authOidcLink', { token, params: { provider: 'company' } })
  const [pair] = response.headers.getSetCookie()[0]!.split(';')
  return visit(response.body.url, new Map([['slipway_oidc', pair!]]))
}
const unlink = (token: string, provider = 'company') =>
  service.call('authOidcUnlink', { token, params: { provider } })

test('a signed-in user can link an identity, which no other user can link afterwards', async () => {
  const user = await addUser(service.database)
  expect((await link(await tokenOf(service.database, user))).path).toBe('/account')
  expect((await signIn()).caller.id).toBe(user.id)
  const other = await addUser(service.database)
  expect((await link(await tokenOf(service.database, other))).path).toBe('/sign-in?sso=taken')
  expect((await signIn()).caller.id).toBe(user.id)
})

test('a user can unlink an identity, which then signs in to a separate account', async () => {
  const user = await addUser(service.database)
  const token = await tokenOf(service.database, user)
  expect((await unlink(token)).status).toBe(404)
  await link(token)
  const linked = { provider: 'company', issuer: stand.issuer, subject: stand.account.sub }
  expect((await service.ok('authIdentityList', { token })).items).toEqual([expect.objectContaining(linked)])
  expect((await unlink(token, 'nobody')).status).toBe(404)
  expect((await unlink(token)).status).toBe(200)
  expect((await service.ok('authIdentityList', { token })).items).toEqual([])
  expect((await signIn()).caller.id).not.toBe(user.id)
  const events = await service.sql('SELECT FROM events WHERE type = $1 AND resource_id = $2', [
    'user.identity_unlinked',
    user.id,
  ])
  const pending = await service.sql('SELECT FROM events_pending WHERE type = $1 AND resource_id = $2', [
    'user.identity_unlinked',
    user.id,
  ])
  expect([...events, ...pending]).toHaveLength(1)
})

test('an account without a password cannot unlink its only identity', async () => {
  const { token } = await signIn()
  const refusal = await unlink(token)
  expect([refusal.status, refusal.body]).toMatchObject([409, { code: 'conflict' }])
  expect((await service.ok('authIdentityList', { token })).items).toHaveLength(1)
})

test('roles from claims end when the identity is unlinked', async () => {
  const organizationId = await addOrganization(service.database, 'Company')
  const user = await addUser(service.database)
  const own = await tokenOf(service.database, user)
  await link(own)
  stand.account.groups = ['ml']
  const { token } = await signIn()
  const isMember = async () =>
    (await service.ok('organizationList', { token })).some(({ id }) => id === organizationId)
  expect(await isMember()).toBe(true)
  expect((await unlink(own)).status).toBe(200)
  expect(await isMember()).toBe(false)
  await service.sql('UPDATE organizations SET name = $1 WHERE id = $2', ['Previous company', organizationId])
})

test('tokens that are not for this sign-in are rejected: nonce, audience, issuer, age', async () => {
  const now = Math.floor(Date.now() / 1000)
  for (const claims of [
    { nonce: 'of another sign-in' },
    { aud: 'another-client' },
    { iss: 'http://127.0.0.1:1' },
    { exp: now - 3600, iat: now - 7200 },
  ]) {
    stand.claims = claims
    await refused()
  }
  stand.claims = {}
  await signIn()
})

test('an unverified address or one of another domain is refused if allowed domains are configured', async () => {
  stand.account.email_verified = false
  await refused()
  stand.account = { ...stand.account, email: 'ada@elsewhere.example', email_verified: true }
  await refused()
  stand.account = { sub: stand.account.sub }
  await refused()
})

test('after the provider rotates its signing key, the new key is accepted immediately', async () => {
  const before = await signIn()
  await stand.rotateKey()
  expect((await signIn()).caller.id).toBe(before.caller.id)
})

test('a sign-in that was started in another browser, or whose state was modified, is rejected', async () => {
  const started = await fetch(begin(), { redirect: 'manual' })
  const cookie = started.headers.getSetCookie()[0]!
  expect(cookie).toMatch(/; Path=\/v0.1\/auth\/oidc; HttpOnly; SameSite=Lax$/)
  expect(cookie).toMatch(/Max-Age=600;/)
  const provider = started.headers.get('location')!
  // The victim's browser has no cookie of this flow.
  expect((await visit(provider)).path).toBe('/sign-in?sso=refused')
  const jar: Jar = new Map([['slipway_oidc', cookie.split(';')[0]!]])
  const changed = new URL(provider)
  changed.searchParams.set('state', 'x'.repeat(43))
  expect((await visit(changed.href, jar)).path).toBe('/sign-in?sso=refused')
  const garbled: Jar = new Map([['slipway_oidc', 'slipway_oidc=AAAA']])
  expect((await visit(provider, garbled)).path).toBe('/sign-in?sso=refused')
})

test('an owner who lost the claim cannot return with an invitation that they created before', async () => {
  const organization_id = await addOrganization(service.database, 'Company')
  await addUser(service.database, { memberOf: { [organization_id]: 'owner' } })
  stand.account.groups = ['founders']
  const { token } = await signIn()
  const { invite_url } = await service.ok('memberCreate', {
    token,
    params: { organization_id },
    body: { email: someEmail('guest'), role: 'owner' },
  })
  stand.account.groups = ['ml']
  const code = new URL(invite_url).hash.slice('#code='.length)
  const accept = () => service.call('authAccept', { token: null, body: { code, password } })
  await signIn()
  expect(await accept()).toMatchObject({ status: 400, body: { code: 'invalid_grant' } })
  // Renames this organization, because the organization of another test has the same name.
  await service.sql(`UPDATE organizations SET name = 'Former company' WHERE id = $1`, [organization_id])
})

test('a role follows its claim at each sign-in and ends with it, and a role from an invitation stays', async () => {
  const organization_id = await addOrganization(service.database, 'Company')
  const params = { organization_id }
  stand.account.groups = ['ml', 'gpu-admins', 'unknown']
  const { token, caller } = await signIn()
  const roleOf = async () => {
    const rows = await service.sql<{ role: string }>(
      'SELECT role FROM memberships WHERE user_id = $1 AND organization_id = $2',
      [caller.id, organization_id],
    )
    return rows[0]?.role
  }
  expect(await roleOf()).toBe('admin')
  const key = await service.ok('organizationKeyCreate', {
    token,
    params,
    body: { name: 'ci', role: 'admin' },
  })
  stand.account.groups = ['ml']
  await signIn()
  expect(await roleOf()).toBe('member')
  expect((await service.call('rootGet', { token: key.secret })).status).toBe(401)
  stand.account.groups = []
  await signIn()
  expect(await roleOf()).toBeUndefined()
  expect((await service.call('organizationGet', { token, params })).status).toBe(404)
  await service.sql(`INSERT INTO memberships (organization_id, user_id, role) VALUES ($1, $2, 'viewer')`, [
    organization_id,
    caller.id,
  ])
  stand.account.groups = ['gpu-admins']
  await signIn()
  expect(await roleOf()).toBe('viewer')

  const elsewhere = await addOrganization(service.database, 'Elsewhere')
  const thief = await addUser(service.database, { memberOf: { [elsewhere]: 'owner' } })
  const rename = await service.call('organizationUpdate', {
    token: await tokenOf(service.database, thief),
    params: { organization_id: elsewhere },
    body: { name: 'Company' },
  })
  expect(rename.status).toBe(409)
})

test('two-factor authentication at the provider counts where an organization requires it', async () => {
  const organization_id = await addOrganization(service.database, 'Careful')
  await service.sql('UPDATE organizations SET require_totp = true WHERE id = $1', [organization_id])
  const plain = await signIn()
  await service.sql(`INSERT INTO memberships (organization_id, user_id, role) VALUES ($1, $2, 'viewer')`, [
    organization_id,
    plain.caller.id,
  ])
  service.server.services.signals.send('access')
  const read = (token: string) => service.call('organizationGet', { token, params: { organization_id } })
  expect((await read(plain.token)).status).toBe(403)
  stand.claims = { amr: ['pwd', 'mfa'] }
  expect((await read((await signIn()).token)).status).toBe(200)
})

test('a suspended account cannot sign in, and an unknown provider returns 404', async () => {
  const { caller } = await signIn()
  const params = { user_id: caller.id }
  const token = service.credentials.operator_key
  await service.ok('adminUserUpdate', { token, params, body: { suspended: true } })
  await refused()
  expect((await fetch(`${service.url}/v0.1/auth/oidc/nowhere`)).status).toBe(404)
  expect((await service.call('adminUserReset', { token, params })).status).toBe(409)
})

/** Runs the work with an organization in which claims give roles. */
async function inCompany(work: (organization_id: string) => Promise<void>) {
  // Claims give roles only if the organization's name is unique.
  await service.sql(`UPDATE organizations SET name = 'Former company' WHERE name = 'Company'`)
  const organization_id = await addOrganization(service.database, 'Company')
  await addUser(service.database, { memberOf: { [organization_id]: 'owner' } })
  await work(organization_id).finally(() => service.clock.reset())
}
const createProject = async (token: string, organization_id: string) =>
  (await service.call('projectCreate', { token, body: { name: crypto.randomUUID(), organization_id } }))
    .status

for (const givesRefreshTokens of [false, true])
  test(`a role ends at the first refresh after its claim is removed, ${givesRefreshTokens ? 'with a refresh token' : 'with userinfo'}`, async () => {
    await inCompany(async (organization_id) => {
      stand.givesRefreshTokens = givesRefreshTokens
      stand.account.groups = ['gpu-admins']
      const { token, jar } = await signIn()
      expect(await createProject(token, organization_id)).toBe(200)
      expect((await refreshIn(jar)).status).toBe(200)
      expect(await createProject(token, organization_id)).toBe(200)
      stand.account.groups = ['ml']
      const demoted = await refreshIn(jar)
      expect(await createProject(demoted.token, organization_id)).toBe(403)
      // The earlier token belongs to the same session and user.
      expect(await createProject(token, organization_id)).toBe(403)
      stand.account.groups = []
      expect(await createProject((await refreshIn(jar)).token, organization_id)).toBe(404)
      // Signing in refreshes the session, too.
      expect(stand.refreshes).toBe(givesRefreshTokens ? 4 : 0)
    })
  })

for (const givesRefreshTokens of [false, true])
  test(`a session ends when the provider no longer confirms its user, ${givesRefreshTokens ? 'with a refresh token' : 'with userinfo'}`, async () => {
    await inCompany(async (organization_id) => {
      stand.givesRefreshTokens = givesRefreshTokens
      stand.account.groups = ['gpu-admins']
      const { token, jar } = await signIn()
      stand.isGone = true
      expect((await refreshIn(jar)).status).toBe(401)
      expect(await createProject(token, organization_id)).toBe(401)
    })
  })

test('while the provider is down, a session continues until its maximum age, and refreshing does not extend it', async () => {
  await inCompany(async (organization_id) => {
    stand.givesRefreshTokens = true
    stand.account.groups = ['gpu-admins']
    const { jar } = await signIn()
    stand.isDown = true
    expect((await refreshIn(jar)).status).toBe(200)
    await service.clock.advance('23 hours')
    const { token } = await refreshIn(jar)
    expect(await createProject(token, organization_id)).toBe(200)
    stand.isDown = false
    expect((await refreshIn(jar)).status).toBe(200)
    await service.clock.advance('61 minutes')
    expect((await refreshIn(jar)).status).toBe(401)
  })
})

test('a role from single sign-on ends after the maximum age, in all sessions and for invitations', async () => {
  await inCompany(async (organization_id) => {
    const user = await addUser(service.database)
    const withPassword = await tokenOf(service.database, user)
    await link(withPassword)
    stand.account.groups = ['founders']
    const { token } = await signIn()
    const { invite_url } = await service.ok('memberCreate', {
      token,
      params: { organization_id },
      body: { email: someEmail('guest'), role: 'owner' },
    })
    const code = new URL(invite_url).hash.slice('#code='.length)
    const later = async () => tokenOf(service.database, user)
    expect(await createProject(await later(), organization_id)).toBe(200)
    await service.clock.advance('25 hours')
    expect(await createProject(await later(), organization_id)).toBe(404)
    const accept = () => service.call('authAccept', { token: null, body: { code, password } })
    expect(await accept()).toMatchObject({ status: 400, body: { code: 'invalid_grant' } })
    // The next sign-in at the provider grants the role again.
    expect(await createProject((await signIn()).token, organization_id)).toBe(200)
  })
})

test('the provider’s tokens are encrypted at rest', async () => {
  await inCompany(async () => {
    stand.account.groups = ['ml']
    const { caller } = await signIn()
    const [family] = await service.sql<{ oidc_sealed: Buffer }>(
      'SELECT oidc_sealed FROM token_families WHERE user_id = $1',
      [caller.id],
    )
    expect(family!.oidc_sealed.length).toBeGreaterThan(0)
    expect(family!.oidc_sealed.toString('latin1')).not.toContain(stand.account.sub)
  })
})
