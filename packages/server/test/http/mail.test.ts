import type { AddressInfo } from 'node:net'
import { eventually } from '@slipway/testing/eventually.ts'
import { addUser, ownerToken, password, someEmail } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

interface Received {
  to: string[]
  text: string
}

let service: TestService
let smtp: SMTPServer
let received: Received[]
/** The mail server's reply to a recipient; null accepts it. */
let refusal: number | null

beforeAll(async () => {
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: (_address, _session, done) =>
      done(refusal === null ? undefined : Object.assign(new Error('no'), { responseCode: refusal })),
    onData(stream, session, done) {
      let text = ''
      stream.on('data', (part) => {
        text += part
      })
      stream.on('end', () => {
        // Long lines are folded in transit.
        received.push({ to: session.envelope.rcptTo.map(({ address }) => address), text: unfold(text) })
        done()
      })
    },
  })
  await new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', resolve))
  const { port } = smtp.server.address() as AddressInfo
  service = await startService((config) => {
    config.mail = { smtpUrlEnv: 'X', smtpUrl: `smtp://127.0.0.1:${port}`, from: 'slipway@example.com' }
  })
})
afterAll(async () => {
  await service?.close()
  await new Promise<void>((resolve) => smtp.close(resolve))
})
beforeEach(() => {
  received = []
  refusal = null
})

const unfold = (text: string) =>
  text
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
const mailTo = (email: string) =>
  eventually(async () => {
    await service.server.mail.once()
    return received.find(({ to }) => to.includes(email))
  })
const codeIn = ({ text }: Received) => /#code=(slpc_[\w-]{43})/.exec(text)![1]!

test('an invitation is mailed with its link, and the mail is stored encrypted', async () => {
  const email = someEmail('friend')
  const token = await ownerToken(service)
  refusal = 450
  const { invite_url } = await service.ok('memberCreate', { token, body: { email, role: 'viewer' } })
  await service.server.mail.once()
  const rows = await service.sql<{ sealed: Buffer }>('SELECT sealed FROM mails')
  expect(rows).toHaveLength(1)
  expect(rows[0]!.sealed.toString('latin1')).not.toContain('slpc_')
  // A mail is sent again to a server that refused it temporarily.
  refusal = null
  await service.clock.advance('5 minutes')
  const mail = await mailTo(email)
  expect(mail.text).toContain('From: slipway@example.com')
  expect(mail.text).toContain(invite_url)
  await eventually(async () => (await service.sql('SELECT FROM mails')).length === 0)
  expect((await service.ok('authInvitation', { token: null, body: { code: codeIn(mail) } })).email).toBe(
    email,
  )
  await service.clock.reset()
})

test('a forgotten password is reset by mail, and the response is the same for every address', async () => {
  const user = await addUser(service.database)
  expect(await service.ok('authOidcList', { token: null })).toMatchObject({ sends_mail: true })
  const forgot = (email: string) => service.call('authForgot', { token: null, body: { email } })
  const responses = [await forgot(user.email.toUpperCase()), await forgot(someEmail('nobody'))]
  expect(responses.map(({ status, body }) => [status, body])).toEqual([
    [200, {}],
    [200, {}],
  ])
  const mail = await mailTo(user.email)
  const body = { code: codeIn(mail), password: 'a fresh passphrase' }
  await service.ok('authReset', { token: null, body })
  const grant = { grant_type: 'password', email: user.email }
  const signIn = async (word: string) =>
    (await service.call('authToken', { token: null, body: { ...grant, password: word } })).status
  expect([await signIn(password), await signIn('a fresh passphrase')]).toEqual([400, 200])
  const [row] = await service.sql(
    'SELECT email_verified_at IS NOT NULL AS is_verified FROM users WHERE id = $1',
    [user.id],
  )
  expect(row).toEqual({ is_verified: true })
  await service.server.mail.once()
  expect(received).toHaveLength(1)
})

test('password resets cannot flood a mailbox', async () => {
  const user = await addUser(service.database)
  const statuses = []
  for (let i = 0; i <= service.config.limits.passwordFailuresPerMinute; i++)
    statuses.push((await service.call('authForgot', { token: null, body: { email: user.email } })).status)
  expect(statuses.at(-1)).toBe(429)
  await mailTo(user.email)
  await service.server.mail.once()
  expect(received.filter(({ to }) => to.includes(user.email))).toHaveLength(1)
})

test('only owners and admins get mail about budgets and payments, once', async () => {
  const { organization_id, project_id } = service.credentials
  const admin = await addUser(service.database, { memberOf: { [organization_id]: 'admin' } })
  const viewer = await addUser(service.database, { memberOf: { [organization_id]: 'viewer' } })
  const addEvent = (type: string, projectId: string | null, data: object) =>
    service.sql(
      `INSERT INTO events_pending (id, organization_id, project_id, type, resource_type, resource_id, actor, request_id, data)
       VALUES (gen_random_uuid(), $1, $2, $3, 'project', 'x', 'system', '', $4)`,
      [projectId ? null : organization_id, projectId, type, JSON.stringify(data)],
    )
  await service.server.mail.once()
  const data = { name: 'default', threshold_percent: 80, monthly_usd: 100, spent_usd: 81.5, hard_stop: true }
  await addEvent('budget.threshold_reached', project_id, data)
  await addEvent('organization.payment_declined', null, {})
  await service.ok('adminEventList', { token: service.credentials.operator_key })
  await eventually(async () => {
    await service.server.mail.once()
    return received.filter(({ to }) => to.includes(admin.email)).length === 2
  })
  await service.server.mail.once()
  const toAdmin = received.filter(({ to }) => to.includes(admin.email))
  expect(toAdmin).toHaveLength(2)
  expect(toAdmin.map(({ text }) => text).join()).toContain('spent 81.5 of 100 US dollars')
  expect(received.some(({ to }) => to.includes(viewer.email))).toBe(false)
})

test('additional recipients get the same mail, and mail about the decision on a quota request', async () => {
  const token = await ownerToken(service)
  const email = someEmail('oncall')
  const recipients = await service.ok('alertRecipientsSet', {
    token,
    body: { emails: [email.toUpperCase(), email] },
  })
  expect(recipients).toEqual({ emails: [email] })
  expect(await service.ok('alertRecipientsGet', { token })).toEqual(recipients)
  const body = { name: 'vms' as const, max: 100_000, reason: 'growth' }
  const { id: quota_request_id } = await service.ok('quotaRequestCreate', { token, body })
  await service.ok('adminQuotaRequestUpdate', {
    token: service.credentials.operator_key,
    params: { quota_request_id },
    body: { state: 'rejected', note: 'Ask again in January' },
  })
  const mail = await mailTo(email)
  expect(mail.text).toContain('to raise the quota vms to 100000 was rejected')
  expect(mail.text).toContain('Ask again in January')
  expect(mail.text).toContain('listed this address for alerts')
  // A tenant cannot flood an address that never asked for mail.
  const { organization_id } = service.credentials
  for (let n = 0; n < 21; n++)
    await service.sql(
      `INSERT INTO events_pending (id, organization_id, type, resource_type, resource_id, actor, request_id, data)
       VALUES (gen_random_uuid(), $1, 'organization.payment_removed', 'organization', 'x', 'system', '', '{}')`,
      [organization_id],
    )
  await service.ok('adminEventList', { token: service.credentials.operator_key })
  await eventually(async () => {
    await service.server.mail.once()
    const waiting = await service.sql('SELECT FROM mails')
    const toOwner = received.filter(({ text }) => text.includes('payment method removed'))
    return waiting.length === 0 && toOwner.length >= 21
  })
  expect(received.filter(({ to }) => to.includes(email))).toHaveLength(20)
  const refused = await service.call('alertRecipientsSet', { token, body: { emails: ['not an address'] } })
  expect(refused.status).toBe(400)
  expect(await service.ok('alertRecipientsSet', { token, body: { emails: [] } })).toEqual({ emails: [] })
})

test('a mail that the mail server refuses permanently is not sent again, and its invitation still works', async () => {
  refusal = 550
  const token = await ownerToken(service)
  const body = { email: someEmail('refused'), role: 'viewer' as const }
  const { invite_url } = await service.ok('memberCreate', { token, body })
  await eventually(async () => {
    await service.server.mail.once()
    return (await service.sql('SELECT FROM mails')).length === 0
  })
  const code = invite_url.split('#code=')[1]!
  const accepted = await service.call('authAccept', { token: null, body: { code, password } })
  expect(accepted.status).toBe(200)
})

test('a commonly guessed password is rejected in any spelling', async () => {
  const token = await ownerToken(service)
  const body = { email: someEmail('weak'), role: 'viewer' as const }
  const code = (await service.ok('memberCreate', { token, body })).invite_url.split('#code=')[1]!
  for (const weak of ['Password123', '12345678', 'iloveyou']) {
    const response = await service.call('authAccept', { token: null, body: { code, password: weak } })
    expect(response.status, weak).toBe(400)
    expect((response.body as unknown as { details: unknown[] }).details).toMatchObject([
      { field: '/password' },
    ])
  }
})
