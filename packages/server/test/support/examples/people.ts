import type { Role } from '@slipway/contract'
import { keepSessions } from '@slipway/testing/people.ts'
import { URI } from 'otpauth'
import { createSetupCode } from '../../../src/accounts/credentials.ts'
import { readServiceTime } from '../../../src/postgres/ping.ts'
import type { Recorder } from './recorder.ts'

const password = 'correct horse battery'
const newPassword = 'staple orbit lantern'
const codeIn = (url: string) => url.split('#code=')[1]!

export interface Tenant {
  organization_id: string
  project_id: string
  ownerToken: string
}

/** An operator invites Ada, who accepts, adds a card and creates a project with an access key. */
export async function recordSigningUp({ service, ok, defaults, refused }: Recorder): Promise<Tenant> {
  const operatorToken = service.credentials.operator_key
  const { id: organization_id } = await ok('adminOrganizationCreate', { body: { name: 'Harbour Labs' } })
  const invited = await ok('adminUserCreate', {
    body: { email: 'ada@example.com', organization_id, role: 'owner' },
  })
  const code = codeIn(invited.invite_url)
  await ok('authInvitation', { token: null, body: { code } })
  await ok('authAccept', { token: null, body: { code, password } })
  const grant = { grant_type: 'password', email: 'ada@example.com', password }
  const { access_token: ownerToken } = await ok('authToken', { token: null, body: grant })
  await keepSessions(service)
  defaults.token = ownerToken
  defaults.params = { organization_id }

  const { id: project_id } = await ok('projectCreate', {
    body: { name: 'research', organization_id, labels: { team: 'ml' } },
  })
  defaults.params = { organization_id, project_id }
  await refused('payment_method_required', 'vmList')
  const billing = await ok('organizationBilling')
  await fetch(`${billing.url}/card`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ number: '4242424242424242', expiry: '12/30' }),
  })
  await ok('organizationPaymentMethod')
  const quotas = [
    { name: 'a100_gpus', max: 32 },
    { name: 'projects', max: 20 },
  ]
  await ok('adminOrganizationQuotaSet', { token: operatorToken, body: { items: quotas } })
  const key = await ok('accessKeyCreate', { body: { name: 'ci', role: 'write' } })
  defaults.token = key.secret
  return { organization_id, project_id, ownerToken }
}

export async function recordMembers(
  { service, ok, refused, defaults }: Recorder,
  { ownerToken: token }: Tenant,
) {
  await ok('rootGet')
  await ok('organizationList', { token })
  await ok('organizationGet')
  await ok('projectList', { token })
  await ok('projectGet')
  await ok('projectUpdate', { token, body: { name: 'research', labels: { team: 'ml' } } })
  await ok('organizationUpdate', { token, body: { name: 'Harbour Labs' } })
  const { organization_id } = defaults.params
  const scratch = await service.ok('projectCreate', { token, body: { name: 'scratch', organization_id } })
  await ok('projectDelete', { token, params: { project_id: scratch.id } })
  await ok('accessKeyList')
  const spare = await ok('accessKeyCreate', { token, body: { name: 'spare', role: 'read' } })
  await refused('permission_denied', 'diskCreate', {
    token: spare.secret,
    body: { name: 'datasets', size: '500GiB', location: 'us-east1-a' },
  })
  await ok('accessKeyDelete', { token, params: { key_id: spare.id } })
  const orgKey = await ok('organizationKeyCreate', { token, body: { name: 'billing', role: 'viewer' } })
  await ok('organizationKeyList', { token })
  await ok('organizationKeyDelete', { token, params: { key_id: orgKey.id } })

  await ok('alertRecipientsSet', { token, body: { emails: ['oncall@example.com'] } })
  await ok('alertRecipientsGet', { token })
  const operatorToken = service.credentials.operator_key
  const more = { name: 'a100_gpus' as const, max: 64, reason: 'A training run with 64 GPUs in December' }
  const withdrawn = await ok('quotaRequestCreate', { token, body: more })
  await ok('quotaRequestDelete', { token, params: { quota_request_id: withdrawn.id } })
  const request = await service.ok('quotaRequestCreate', { token, params: defaults.params, body: more })
  await ok('quotaRequestList', { token })
  await ok('adminQuotaRequestList', { token: operatorToken, query: { state: 'open' } })
  await ok('adminQuotaRequestUpdate', {
    token: operatorToken,
    params: { quota_request_id: request.id },
    body: { state: 'rejected', note: 'New hosts arrive in January' },
  })

  const grace = { email: 'grace@example.com', role: 'member' as Role }
  const invited = await ok('memberCreate', { token, body: grace })
  const { invite_url } = await ok('memberInvite', { token, params: { user_id: invited.user_id } })
  await service.ok('authAccept', { token: null, body: { code: codeIn(invite_url), password } })
  const { items } = await ok('memberList', { token })
  const { user_id } = items.find(({ email }) => email === grace.email)!
  await ok('memberUpdate', { token, params: { user_id }, body: { role: 'admin' } })
  await ok('memberDelete', { token, params: { user_id } })
}

/** Records how users manage their own password, two-factor authentication and sessions. */
export async function recordAccount(recorder: Recorder) {
  const { service, ok, refused, defaults } = recorder
  const operatorToken = service.credentials.operator_key
  const email = 'edsger@example.com'
  const body = { email, organization_id: defaults.params.organization_id!, role: 'viewer' as Role }
  const invited = await service.ok('adminUserCreate', { token: operatorToken, body })
  await service.ok('authAccept', { token: null, body: { code: codeIn(invited.invite_url), password } })
  const signIn = async (secret: string) => {
    const grant = { grant_type: 'password', email, password: secret }
    const tokens = await service.ok('authToken', { token: null, body: grant })
    await keepSessions(service)
    return tokens
  }
  await refused('invalid_grant', 'authToken', {
    token: null,
    body: { grant_type: 'password', email, password: 'not the password' },
  })
  const first = await signIn(password)
  await service.sql('UPDATE organizations SET require_totp = true WHERE id = $1', [body.organization_id])
  await refused('totp_enrolment_required', 'memberList', { token: first.access_token })
  await service.sql('UPDATE organizations SET require_totp = false WHERE id = $1', [body.organization_id])
  await ok('authRevoke', { token: null, body: { refresh_token: first.refresh_token } })
  const { access_token: token } = await signIn(password)
  const user_id = (await service.ok('rootGet', { token })).caller.id
  await ok('adminUserGet', { token: operatorToken, params: { user_id } })
  const change = { current_password: password, new_password: newPassword }
  await ok('authPassword', { token, body: change })
  await ok('authForgot', { token: null, body: { email } })
  const { items } = await ok('authSessionList', { token })
  await ok('authSessionGet', { token, params: { session_id: items[0]!.id } })

  const enrol = async () => {
    const { otpauth_uri } = await ok('authTotpCreate', { token, body: { current_password: newPassword } })
    const now = (await readServiceTime(service.database)).getTime()
    const code = URI.parse(otpauth_uri).generate({ timestamp: now } as never)
    return ok('authTotpConfirm', { token, body: { code } })
  }
  const { recovery_codes } = await enrol()
  await ok('authTotpRemove', { token, body: { code: recovery_codes[0]! } })
  await enrol()
  await ok('adminUserTotpDelete', { token: operatorToken, params: { user_id } })

  const reset = await ok('adminUserReset', { token: operatorToken, params: { user_id } })
  await ok('authReset', { token: null, body: { code: codeIn(reset.reset_url), password } })
  const { access_token: later } = await signIn(password)
  const sessions = await service.ok('authSessionList', { token: later })
  await ok('authSessionDelete', { token: later, params: { session_id: sessions.items[0]!.id } })
  const { access_token: last } = await signIn(password)
  await ok('authSessionDeleteAll', { token: last })
  await ok('adminUserUpdate', { token: operatorToken, params: { user_id }, body: { suspended: true } })

  const setupCode = await service.database.transaction((tx) => createSetupCode(tx))
  await ok('authSetup', { token: null, body: { code: setupCode, email: 'operator@example.com', password } })
}
