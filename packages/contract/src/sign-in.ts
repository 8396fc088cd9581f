import Type, { type Static } from 'typebox'
import { defineRoutes } from './route.ts'
import { body, Email, Empty, Password, record, Timestamp, Uuid, wholeList } from './schema.ts'

/** What a person does about signing in, besides the tokens themselves: resets, second factors, sessions. */

export const Session = record('Session', {
  id: Uuid,
  is_current: Type.Boolean({ description: 'Whether this very request belongs to it.' }),
  client_address: Type.String({ examples: ['203.0.113.7'] }),
  user_agent: Type.String({ examples: ['Mozilla/5.0'] }),
  has_second_factor: Type.Boolean(),
  created_at: Timestamp,
  last_used_at: Timestamp,
})
export type Session = Static<typeof Session>

export const Identity = record('Identity', {
  provider: Type.String({
    description: 'Its name here; empty when it is no longer configured.',
    examples: ['company'],
  }),
  issuer: Type.String({ examples: ['https://idp.example.com'] }),
  subject: Type.String({ examples: ['248289761001'] }),
  linked_at: Timestamp,
})
export type Identity = Static<typeof Identity>

const code = Type.String({ minLength: 1, maxLength: 256, description: 'The one-time code.' })
const totpCode = Type.String({
  minLength: 6,
  maxLength: 64,
  description: 'Six digits of the authenticator, or a recovery code.',
  examples: ['492039'],
})
const common = { tag: 'Authentication', opensTransactions: true, noStore: true } as const

export const signInRoutes = defineRoutes({
  authReset: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/reset',
    summary: 'Set a new password by a reset code',
    description: 'Ends all sessions of the user and keeps the second factor.',
    access: 'public',
    body: body('ResetRequest', { code, password: Password }),
    answer: Empty,
    errors: ['invalid_grant'],
  },
  authForgot: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/forgot',
    summary: 'Have a reset code mailed',
    description:
      'The answer is the same for every address. Where the service sends no mail: 409, and an operator can make a link.',
    access: 'public',
    body: body('ForgotRequest', { email: Email }),
    answer: Empty,
    errors: ['conflict'],
  },
  authTotpCreate: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/totp',
    summary: 'Begin to set up a second factor',
    description: 'It counts once it has been confirmed by a code.',
    access: 'user',
    body: body('TotpRequest', { current_password: Type.String({ minLength: 1, maxLength: 256 }) }),
    answer: record('TotpSecret', {
      otpauth_uri: Type.String({
        description: 'For an authenticator, as a QR code or by hand.',
        examples: ['otpauth://totp/Slipway:ada@example.com?issuer=Slipway&secret=JBSWY3DPEHPK3PXP'],
      }),
    }),
    errors: ['invalid_grant', 'conflict'],
  },
  authTotpConfirm: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/totp/confirm',
    summary: 'Confirm the second factor',
    description: 'The answer alone has the recovery codes: each stands in for the second factor once.',
    access: 'user',
    body: body('TotpConfirmation', { code: totpCode }),
    answer: record('RecoveryCodes', { recovery_codes: Type.Array(Type.String()) }),
    errors: ['invalid_grant', 'conflict'],
  },
  authTotpRemove: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/totp/remove',
    summary: 'Remove the second factor',
    access: 'user',
    body: body('TotpRemoval', { code: totpCode }),
    answer: Empty,
    errors: ['invalid_grant', 'conflict'],
  },
  authOidcList: {
    method: 'GET',
    path: '/v0.1/auth/oidc',
    tag: 'Authentication',
    summary: 'List providers of single sign-on',
    description:
      'A browser begins at `/v0.1/auth/oidc/{name}` and comes back to `/v0.1/auth/oidc/{name}/callback` with a session of the console.',
    access: 'public',
    answer: wholeList(
      'SignInProviderList',
      record('SignInProvider', { name: Type.String({ examples: ['company'] }) }),
    ),
  },
  authOidcLink: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/oidc/{provider}/link',
    summary: 'Bind an identity at a provider to one’s account',
    description: 'Open the address in the same browser: the cookie of this answer goes with it.',
    access: 'user',
    answer: record('SignInRedirect', { url: Type.String({ examples: ['https://idp.example.com/auth?…'] }) }),
    errors: ['not_found'],
  },
  authOidcUnlink: {
    ...common,
    method: 'DELETE',
    path: '/v0.1/auth/oidc/{provider}/link',
    summary: 'Take one’s identity at a provider off one’s account',
    description:
      'Memberships that its claims gave end. 409 for the only way to sign in: an account without a password keeps its last identity.',
    access: 'user',
    answer: Empty,
    errors: ['not_found', 'conflict'],
  },
  authIdentityList: {
    method: 'GET',
    path: '/v0.1/auth/identities',
    tag: 'Authentication',
    summary: 'List one’s identities at providers of single sign-on',
    access: 'user',
    answer: wholeList('IdentityList', Identity),
    noStore: true,
  },
  authSessionList: {
    method: 'GET',
    path: '/v0.1/auth/sessions',
    tag: 'Authentication',
    summary: 'List where one is signed in',
    access: 'user',
    answer: wholeList('SessionList', Session),
    noStore: true,
  },
  authSessionGet: {
    method: 'GET',
    path: '/v0.1/auth/sessions/{session_id}',
    tag: 'Authentication',
    summary: 'Read a session of one’s own',
    access: 'user',
    answer: Session,
    errors: ['not_found'],
    noStore: true,
  },
  authSessionDelete: {
    ...common,
    method: 'DELETE',
    path: '/v0.1/auth/sessions/{session_id}',
    summary: 'End a session of one’s own',
    access: 'user',
    answer: Empty,
    errors: ['not_found'],
  },
  authSessionDeleteAll: {
    ...common,
    method: 'DELETE',
    path: '/v0.1/auth/sessions',
    summary: 'End all other sessions of one’s own',
    access: 'user',
    answer: Empty,
  },
})
