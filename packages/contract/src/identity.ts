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
  UuidOrEmpty,
} from './schema.ts'
import { roles } from './states.ts'

export const TokenRequest = Type.Union(
  [
    body('PasswordGrant', {
      grant_type: Type.Literal('password'),
      email: Type.String({ minLength: 1, maxLength: 254, examples: ['ada@example.com'] }),
      password: Type.String({ minLength: 1, maxLength: 256 }),
      totp_code: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description:
            'Required if the user has a second factor: the six digits that the authenticator app shows, or a recovery code. If it is missing and the password is correct, the error is `invalid_grant` with `error_description` `totp_required`.',
        }),
      ),
    }),
    body('RefreshGrant', {
      grant_type: Type.Literal('refresh_token'),
      refresh_token: Type.String({ minLength: 1, maxLength: 256 }),
    }),
  ],
  { examples: [{ grant_type: 'password', email: 'ada@example.com', password: 'correct horse' }] },
)

export const TokenResponse = record(
  'Token',
  {
    access_token: Type.String(),
    refresh_token: Type.String({
      description: 'Can be used once. The response to its use contains the next refresh token.',
    }),
    expires_in: Type.Integer({ description: 'Seconds until the access token expires.', examples: [3600] }),
    token_type: Type.Literal('bearer'),
  },
  { examples: [{ access_token: 'slpa_…', refresh_token: 'slpr_…', expires_in: 3600, token_type: 'bearer' }] },
)
export type TokenResponse = Static<typeof TokenResponse>

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
    has_totp: Type.Boolean({ description: 'Whether the user has set up a second factor; false for keys.' }),
    role: Type.String({ description: 'The role of the access key. Empty for other callers.' }),
    project_id: Type.String({
      description: 'The project of the access key. Empty for organization keys and other callers.',
    }),
    organization_id: Type.String({
      description: 'The organization of the access key. Empty for other callers.',
    }),
    address: Type.String({
      description: 'The address from which the request came, for example to allow it in a firewall rule.',
      examples: ['203.0.113.7'],
    }),
  }),
})

export const AllowedCidrs = Type.Array(Type.String({ minLength: 1, maxLength: 60 }), {
  maxItems: 64,
  description:
    'IPv4 and IPv6 blocks or addresses from which the key works. If the list is empty, the key works from any address.',
  examples: [['203.0.113.0/24']],
})

export const AccessKey = record('AccessKey', {
  id: Uuid,
  name: DisplayName,
  role: Type.Enum(['read', 'write', ...roles], {
    description: '`read` or `write` for a project key; a role for an organization key.',
  }),
  prefix: Type.String({
    description: 'The first characters of the key, to identify it.',
    examples: ['slp_Xy12Ab34'],
  }),
  created_by: Type.String({
    description: 'The user who created the key, directly or with another key. Empty if unknown.',
  }),
  parent_id: Type.String({
    ...UuidOrEmpty,
    description: 'The key that created it; empty if a signed-in user did.',
  }),
  created_at: Timestamp,
  expires_at: Timestamp,
  last_used_at: Timestamp,
  allowed_cidrs: AllowedCidrs,
})
export type AccessKey = Static<typeof AccessKey>

export const AccessKeyCreated = record('AccessKeyCreated', {
  ...AccessKey.properties,
  secret: Type.String({
    description: 'The key itself, `slp_<8 characters>_<43 characters>`. Only this response shows it.',
  }),
})

export const RevokeKeyQuery = Type.Object({
  revoke_descendants: Type.Optional(
    Type.Boolean({
      default: true,
      description: 'Whether keys that this key created, directly or through other keys, are revoked too.',
    }),
  ),
})

export const AccessKeyRevoked = record('AccessKeyRevoked', {
  revoked_descendants: Type.Array(Uuid, {
    description: 'The ids of the keys that were revoked with it.',
  }),
})

/** What the creation of every kind of key says about limits. */
export const childKeyDescription =
  'A key that is created with a key gets at most the role, `expires_at` and `allowed_cidrs` of that key: 400 for more. If they are left out, those of the creating key apply.'

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
    description:
      'The link that accepts the invitation. Only this response shows it; send it only to the invited person.',
  }),
})

export const MemberRemoved = record('MemberRemoved', {
  access_keys: Type.Array(AccessKey, {
    description: 'The project keys that this member created and that still work.',
  }),
})

export const MemberUpdated = record('MemberUpdated', {
  ...Member.properties,
  access_keys: Type.Array(AccessKey, {
    description: 'After a demotion: the project keys that the member created and that keep working.',
  }),
})

const RevokeKeysQuery = Type.Object({
  revoke_keys: Type.Optional(
    Type.Boolean({ description: 'Also revokes the project keys that the member created.' }),
  ),
})

export const Invitation = record('Invitation', {
  organization_name: Type.String({ description: 'Empty if the invitation is not for an organization.' }),
  role: Type.String({
    description: 'The role in that organization. Empty if the invitation is not for an organization.',
    examples: ['member'],
  }),
  is_operator: Type.Boolean({
    description: 'Whether the invitation makes the account an operator of the service.',
  }),
  email: Type.String({ examples: ['ada@example.com'] }),
  invited_by: Type.String({ examples: ['grace@example.com'] }),
  expires_at: Timestamp,
})
export type Invitation = Static<typeof Invitation>

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
    answer: TokenResponse,
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
    summary: 'Create the first operator with the one-time set-up code',
    access: 'public',
    body: body('SetupRequest', { code, email: Email, password: Password }),
    answer: TokenResponse,
    errors: ['invalid_grant'],
    noStore,
  },
  authAccept: {
    method: 'POST',
    path: '/v0.1/auth/accept',
    opensTransactions: true,
    tag: 'Authentication',
    summary: 'Accept an invitation',
    description:
      'Send a user’s access token without `password` to accept for that user’s account; the response is empty. Send `password` without a token to create an account with the address `email`, or with the invited address if `email` is missing; the response contains the tokens of a new session. A request with `password` never changes an existing account: 409 `already_exists` if the invited address has one, 400 `invalid_grant` if another address has one.',
    access: 'public',
    body: body('AcceptRequest', {
      code,
      password: Type.Optional(Password),
      email: Type.Optional(Email),
    }),
    answer: Type.Union([TokenResponse, Empty]),
    errors: ['invalid_grant', 'unauthenticated', 'permission_denied', 'already_exists'],
    noStore,
  },
  authInvitation: {
    method: 'POST',
    path: '/v0.1/auth/invitation',
    opensTransactions: true,
    changesNothing: true,
    tag: 'Authentication',
    summary: 'Read an invitation',
    access: 'public',
    body: body('InvitationRequest', { code }),
    answer: Invitation,
    errors: ['invalid_grant'],
    noStore,
  },
  rootGet: {
    method: 'GET',
    path: '/v0.1',
    tag: 'Authentication',
    summary: 'Read the service version and the caller',
    access: 'caller',
    answer: RootAnswer,
  },
  accessKeyList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/access-keys',
    tag: 'Projects',
    summary: 'List access keys',
    access: 'viewer',
    worksUnpaid: true,
    query: PageQuery,
    answer: pagedList('AccessKeyList', AccessKey),
  },
  accessKeyCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/access-keys',
    tag: 'Projects',
    summary: 'Create an access key',
    description: `Only this response contains the secret. ${childKeyDescription}`,
    access: 'admin',
    worksUnpaid: true,
    body: body('AccessKeyCreate', {
      name: DisplayName,
      role: Type.Enum(['read', 'write']),
      expires_at: Type.Optional(Instant),
      allowed_cidrs: Type.Optional(AllowedCidrs),
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
    worksUnpaid: true,
    query: RevokeKeyQuery,
    answer: AccessKeyRevoked,
  },
  organizationKeyList: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/access-keys',
    tag: 'Organizations',
    summary: 'List access keys of the organization',
    access: 'viewer',
    query: PageQuery,
    answer: pagedList('OrganizationKeyList', AccessKey),
  },
  organizationKeyCreate: {
    method: 'POST',
    path: '/v0.1/organizations/{organization_id}/access-keys',
    tag: 'Organizations',
    summary: 'Create an access key of the organization',
    description: `The key has its role in the organization and in all its projects. The role cannot be higher than that of the caller. Only this response contains the secret. ${childKeyDescription}`,
    access: 'admin',
    body: body('OrganizationKeyCreate', {
      name: DisplayName,
      role: Type.Enum([...roles]),
      expires_at: Type.Optional(Instant),
      allowed_cidrs: Type.Optional(AllowedCidrs),
    }),
    answer: AccessKeyCreated,
    noStore,
  },
  organizationKeyDelete: {
    method: 'DELETE',
    path: '/v0.1/organizations/{organization_id}/access-keys/{key_id}',
    tag: 'Organizations',
    summary: 'Revoke an access key of the organization',
    description: 'An admin cannot revoke a key with the role `owner`.',
    access: 'admin',
    query: RevokeKeyQuery,
    answer: AccessKeyRevoked,
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
    summary: 'Invite a member',
    description:
      'Creates an invitation, even if the address already has an account. The membership begins when the user accepts it with the link. Until then `user_id` is the id of the invitation. A new invitation to the same address replaces the link.',
    access: 'owner',
    body: body('MemberCreate', { email: Email, role: Type.Enum([...roles]) }),
    answer: MemberCreated,
    errors: ['already_exists', 'quota_exceeded'],
    noStore,
  },
  memberInvite: {
    method: 'POST',
    path: '/v0.1/organizations/{organization_id}/members/{user_id}/invite',
    tag: 'Organizations',
    summary: 'Create a new link for an invited member',
    description: 'The previous link stops working.',
    access: 'owner',
    answer: MemberCreated,
    errors: ['conflict'],
    noStore,
  },
  memberUpdate: {
    method: 'PATCH',
    path: '/v0.1/organizations/{organization_id}/members/{user_id}',
    tag: 'Organizations',
    summary: 'Change a member’s role',
    description:
      'A lower role ends the keys of the organization above it that the member made, and open invitations that need the previous role. Keys of projects stay, and the answer lists them, unless `revoke_keys` is true.',
    access: 'owner',
    query: RevokeKeysQuery,
    body: body('MemberUpdate', { role: Type.Enum([...roles]) }),
    answer: MemberUpdated,
    errors: ['conflict'],
  },
  memberDelete: {
    method: 'DELETE',
    path: '/v0.1/organizations/{organization_id}/members/{user_id}',
    tag: 'Organizations',
    summary: 'Remove a member',
    description:
      'The last owner cannot be removed. Organization keys that the member created are revoked. Project keys that the member created keep working unless `revoke_keys` is true.',
    access: 'owner',
    query: RevokeKeysQuery,
    answer: MemberRemoved,
    errors: ['conflict'],
  },
})
