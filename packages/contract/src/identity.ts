import Type, { type Static } from 'typebox'
import { defineRoutes } from './route.ts'
import {
  body,
  DisplayName,
  Email,
  Empty,
  Instant,
  PageQuery,
  Password,
  pagedList,
  record,
  Timestamp,
  Uuid,
} from './schema.ts'
import { roles } from './states.ts'

export const TokenRequest = Type.Union(
  [
    body('PasswordGrant', {
      grant_type: Type.Literal('password'),
      email: Type.String({ minLength: 1, maxLength: 254, examples: ['ada@example.com'] }),
      password: Type.String({ minLength: 1, maxLength: 256 }),
    }),
    body('RefreshGrant', {
      grant_type: Type.Literal('refresh_token'),
      refresh_token: Type.String({ minLength: 1, maxLength: 256 }),
    }),
  ],
  { examples: [{ grant_type: 'password', email: 'ada@example.com', password: 'correct horse' }] },
)

export const TokenAnswer = record(
  'Token',
  {
    access_token: Type.String(),
    refresh_token: Type.String({ description: 'Works once; the answer to its use has the next one.' }),
    expires_in: Type.Integer({ description: 'Seconds until the access token expires.', examples: [3600] }),
    token_type: Type.Literal('bearer'),
  },
  { examples: [{ access_token: 'slpa_…', refresh_token: 'slpr_…', expires_in: 3600, token_type: 'bearer' }] },
)
export type TokenAnswer = Static<typeof TokenAnswer>

const code = Type.String({ minLength: 1, maxLength: 256, description: 'The one-time code.' })

export const RootAnswer = record('Root', {
  name: Type.Literal('slipway'),
  version: Type.String({ examples: ['0.1.0'] }),
  api_version: Type.Literal('v0.1'),
  caller: Type.Object({
    kind: Type.Enum(['user', 'access_key', 'operator_key']),
    id: Uuid,
    email: Type.String(),
    is_operator: Type.Boolean(),
    role: Type.String({ description: 'Of a project key: `read` or `write`; else empty.' }),
    project_id: Type.String({ description: 'Of a project key; else empty.' }),
  }),
})

export const AccessKey = record('AccessKey', {
  id: Uuid,
  name: DisplayName,
  role: Type.Enum(['read', 'write']),
  prefix: Type.String({
    description: 'The first characters of the key, to recognise it by.',
    examples: ['slp_Xy12Ab34'],
  }),
  created_at: Timestamp,
  expires_at: Timestamp,
  last_used_at: Timestamp,
})
export type AccessKey = Static<typeof AccessKey>

export const AccessKeyCreated = record('AccessKeyCreated', {
  ...AccessKey.properties,
  secret: Type.String({ description: 'The key itself, shown this once: `slp_<8>_<43>`.' }),
})

export const Member = record('Member', {
  user_id: Uuid,
  email: Type.String(),
  role: Type.Enum([...roles]),
  state: Type.Enum(['active', 'invited']),
  created_at: Timestamp,
})
export type Member = Static<typeof Member>

export const MemberCreated = record('MemberCreated', {
  ...Member.properties,
  invite_url: Type.String({
    description: 'For a new e-mail: the link to accept, shown this once; else empty.',
  }),
})

const noStore = true

export const identityRoutes = defineRoutes({
  authToken: {
    method: 'POST',
    path: '/v0.1/auth/token',
    opensTransactions: true,
    tag: 'Authentication',
    summary: 'Exchange a password or a refresh token for tokens',
    access: 'public',
    body: TokenRequest,
    answer: TokenAnswer,
    errors: ['invalid_grant'],
    noStore,
  },
  authRevoke: {
    method: 'POST',
    path: '/v0.1/auth/revoke',
    opensTransactions: true,
    tag: 'Authentication',
    summary: 'End the session that a refresh token belongs to',
    access: 'public',
    body: body('RevokeRequest', { refresh_token: Type.String({ minLength: 1, maxLength: 256 }) }),
    answer: Empty,
    noStore,
  },
  authPassword: {
    method: 'POST',
    path: '/v0.1/auth/password',
    opensTransactions: true,
    tag: 'Authentication',
    summary: 'Change the password and end all other sessions',
    access: 'user',
    body: body('PasswordChange', {
      current_password: Type.String({ minLength: 1, maxLength: 256 }),
      new_password: Password,
    }),
    answer: Empty,
    errors: ['invalid_grant'],
    noStore,
  },
  authSetup: {
    method: 'POST',
    path: '/v0.1/auth/setup',
    opensTransactions: true,
    tag: 'Authentication',
    summary: 'Redeem the one-time set-up code of the first operator',
    access: 'public',
    body: body('SetupRequest', { code, email: Email, password: Password }),
    answer: TokenAnswer,
    errors: ['invalid_grant'],
    noStore,
  },
  authAccept: {
    method: 'POST',
    path: '/v0.1/auth/accept',
    opensTransactions: true,
    tag: 'Authentication',
    summary: 'Accept an invitation',
    access: 'public',
    body: body('AcceptRequest', { code, password: Password }),
    answer: TokenAnswer,
    errors: ['invalid_grant'],
    noStore,
  },
  rootGet: {
    method: 'GET',
    path: '/v0.1',
    tag: 'Authentication',
    summary: 'The service and the caller',
    access: 'caller',
    answer: RootAnswer,
  },
  accessKeyList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/access-keys',
    tag: 'Projects',
    summary: 'List access keys',
    access: 'viewer',
    query: PageQuery,
    answer: pagedList('AccessKeyList', AccessKey),
  },
  accessKeyCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/access-keys',
    tag: 'Projects',
    summary: 'Create an access key',
    description: 'The answer alone contains the secret.',
    access: 'admin',
    body: body('AccessKeyCreate', {
      name: DisplayName,
      role: Type.Enum(['read', 'write']),
      expires_at: Type.Optional(Instant),
    }),
    answer: AccessKeyCreated,
    errors: ['quota_exceeded'],
    noStore,
  },
  accessKeyDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/access-keys/{key_id}',
    tag: 'Projects',
    summary: 'Revoke an access key',
    access: 'admin',
    answer: Empty,
  },
  memberList: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/members',
    tag: 'Organizations',
    summary: 'List members',
    access: 'viewer',
    query: PageQuery,
    answer: pagedList('MemberList', Member),
  },
  memberCreate: {
    method: 'POST',
    path: '/v0.1/organizations/{organization_id}/members',
    tag: 'Organizations',
    summary: 'Add or invite a member',
    access: 'owner',
    body: body('MemberCreate', { email: Email, role: Type.Enum([...roles]) }),
    answer: MemberCreated,
    errors: ['already_exists', 'quota_exceeded'],
    noStore,
  },
  memberUpdate: {
    method: 'PATCH',
    path: '/v0.1/organizations/{organization_id}/members/{user_id}',
    tag: 'Organizations',
    summary: 'Change a member’s role',
    access: 'owner',
    body: body('MemberUpdate', { role: Type.Enum([...roles]) }),
    answer: Member,
    errors: ['conflict'],
  },
  memberDelete: {
    method: 'DELETE',
    path: '/v0.1/organizations/{organization_id}/members/{user_id}',
    tag: 'Organizations',
    summary: 'Remove a member',
    description: 'The last owner cannot be removed.',
    access: 'owner',
    answer: Empty,
    errors: ['conflict'],
  },
})
