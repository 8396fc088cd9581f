import Type, { type Static } from 'typebox'
import { defineRoutes } from './route.ts'
import {
  body,
  Email,
  Empty,
  NonEmptyTimestamp,
  Password,
  record,
  Timestamp,
  Uuid,
  wholeList,
} from './schema.ts'

/**
 * Sign-in routes other than those for tokens: password resets, two-factor authentication, single sign-on and
 * sessions.
 */

export const Session = record('Session', {
  id: Uuid,
  is_current: Type.Boolean({ description: 'True for the session that sent this request.' }),
  client_address: Type.String({ examples: ['203.0.113.7'] }),
  user_agent: Type.String({ examples: ['Mozilla/5.0'] }),
  has_second_factor: Type.Boolean(),
  created_at: NonEmptyTimestamp,
  last_used_at: Timestamp,
  expires_at: Type.String({
    ...Timestamp,
    description: 'When the session ends, even if it is refreshed.',
  }),
})
export type Session = Static<typeof Session>

export const Identity = record('Identity', {
  provider: Type.String({
    description: 'The name of the provider in this service. Empty if the provider is no longer configured.',
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
  description: 'The six digits that the authenticator app shows, or a recovery code.',
  examples: ['492039'],
})
const common = { tag: 'Authentication', opensTransactions: true, noStore: true } as const

export const signInRoutes = defineRoutes({
  authReset: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/reset',
    summary: 'Set a new password with a reset code',
    description: 'Ends all sessions of the user. Two-factor authentication stays on.',
    access: 'public',
    body: body('ResetRequest', { code, password: Password }),
    response: Empty,
    errors: ['invalid_grant'],
  },
  authForgot: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/forgot',
    summary: 'Request a password reset by e-mail',
    description:
      'The response is the same whether or not the address has an account. Returns 409 if the service does not send e-mail; an operator can then create a reset link.',
    access: 'public',
    body: body('ForgotRequest', { email: Email }),
    response: Empty,
    errors: ['conflict'],
  },
  authTotpCreate: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/totp',
    summary: 'Start setting up two-factor authentication',
    description: 'Two-factor authentication becomes active when you confirm it with a code.',
    access: 'user',
    body: body('TotpRequest', { current_password: Type.String({ minLength: 1, maxLength: 256 }) }),
    response: record('TotpSecret', {
      otpauth_uri: Type.String({
        description: 'Show this as a QR code for the authenticator app, or let the user type the secret.',
        examples: ['otpauth://totp/Slipway:ada@example.com?issuer=Slipway&secret=JBSWY3DPEHPK3PXP'],
      }),
    }),
    errors: ['invalid_grant', 'conflict'],
  },
  authTotpConfirm: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/totp/confirm',
    summary: 'Confirm two-factor authentication',
    description:
      'Only this response shows the recovery codes. Each recovery code can be used once instead of a code from the authenticator app.',
    access: 'user',
    body: body('TotpConfirmation', { code: totpCode }),
    response: record('RecoveryCodes', { recovery_codes: Type.Array(Type.String()) }),
    errors: ['invalid_grant', 'conflict'],
  },
  authTotpRemove: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/totp/remove',
    summary: 'Remove two-factor authentication',
    access: 'user',
    body: body('TotpRemoval', { code: totpCode }),
    response: Empty,
    errors: ['invalid_grant', 'conflict'],
  },
  authOidcList: {
    method: 'GET',
    path: '/v0.1/auth/oidc',
    tag: 'Authentication',
    summary: 'List single sign-on providers',
    description:
      'A browser starts at `/v0.1/auth/oidc/{name}`. The provider sends it back to `/v0.1/auth/oidc/{name}/callback`, which creates a console session.',
    access: 'public',
    response: record('SignInProviderList', {
      items: Type.Array(record('SignInProvider', { name: Type.String({ examples: ['company'] }) })),
      sends_mail: Type.Boolean({
        description:
          'Whether the service sends e-mail. If not, a user who forgot the password gets a reset link from an operator.',
      }),
    }),
  },
  authOidcLink: {
    ...common,
    method: 'POST',
    path: '/v0.1/auth/oidc/{provider}/link',
    summary: 'Link a single sign-on identity to your account',
    description:
      'Open `url` in the browser that sent this request, because the response sets a cookie that the sign-in needs.',
    access: 'user',
    response: record('SignInRedirect', {
      url: Type.String({ examples: ['https://idp.example.com/auth?…'] }),
    }),
    errors: ['not_found'],
  },
  authOidcUnlink: {
    ...common,
    method: 'DELETE',
    path: '/v0.1/auth/oidc/{provider}/link',
    summary: 'Unlink a single sign-on identity from your account',
    description:
      'Ends the memberships that came from the claims of this identity. Returns 409 if the account has no password and this is its last identity, because the user could no longer sign in.',
    access: 'user',
    response: Empty,
    errors: ['not_found', 'conflict'],
  },
  authIdentityList: {
    method: 'GET',
    path: '/v0.1/auth/identities',
    tag: 'Authentication',
    summary: 'List your identities at single sign-on providers',
    access: 'user',
    response: wholeList('IdentityList', Identity),
    noStore: true,
  },
  authSessionList: {
    method: 'GET',
    path: '/v0.1/auth/sessions',
    tag: 'Authentication',
    summary: 'List your sessions',
    access: 'user',
    response: wholeList('SessionList', Session),
    noStore: true,
  },
  authSessionGet: {
    method: 'GET',
    path: '/v0.1/auth/sessions/{session_id}',
    tag: 'Authentication',
    summary: 'Read one of your sessions',
    access: 'user',
    response: Session,
    errors: ['not_found'],
    noStore: true,
  },
  authSessionDelete: {
    ...common,
    method: 'DELETE',
    path: '/v0.1/auth/sessions/{session_id}',
    summary: 'End one of your sessions',
    access: 'user',
    response: Empty,
    errors: ['not_found'],
  },
  authSessionDeleteAll: {
    ...common,
    method: 'DELETE',
    path: '/v0.1/auth/sessions',
    summary: 'End all your other sessions',
    access: 'user',
    response: Empty,
  },
})
