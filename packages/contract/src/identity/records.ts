import Type, { type Static } from 'typebox'
import { body, DisplayName, NonEmptyTimestamp, record, Timestamp, Uuid, UuidOrEmpty } from '../schema.ts'
import { keyKinds, roles } from '../states.ts'

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
            'Required if the user has two-factor authentication: the six digits that the authenticator app shows, or a recovery code. If it is missing and the password is correct, the error is `invalid_grant` with `error_description` `totp_required`.',
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
      description:
        'This token can be used once. The response to the refresh contains the next refresh token.',
    }),
    expires_in: Type.Integer({ description: 'Seconds until the access token expires.', examples: [3600] }),
    token_type: Type.Literal('bearer'),
  },
  { examples: [{ access_token: 'slpa_…', refresh_token: 'slpr_…', expires_in: 3600, token_type: 'bearer' }] },
)
export type TokenResponse = Static<typeof TokenResponse>

export const RootResponse = record('Root', {
  name: Type.Literal('slipway'),
  version: Type.String({ examples: ['0.1.0'] }),
  api_version: Type.Literal('v0.1'),
  caller: Type.Object({
    kind: Type.Enum(['user', 'access_key', 'operator_key']),
    id: Uuid,
    email: Type.String(),
    is_operator: Type.Boolean(),
    has_totp: Type.Boolean({
      description: 'Whether the user has set up two-factor authentication; false for keys.',
    }),
    role: Type.String({ description: 'The role of the access key. Empty for other callers.' }),
    project_id: Type.String({
      description: 'The project of the access key. Empty for organization keys and other callers.',
    }),
    organization_id: Type.String({
      description: 'The organization of the access key. Empty for other callers.',
    }),
    address: Type.String({
      description:
        'The address from which the request came. Use it, for example, to allow your own address in a firewall rule.',
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

/** The kind of a new key. */
export const KeyKindInput = Type.Optional(
  Type.Enum([...keyKinds], {
    default: 'bearer',
    description:
      '`bearer`: the secret is sent with each request. `signing`: the secret signs requests to the compatible API under `/v1` and `/v1alpha5`; the service must offer that API, and keeps the secret encrypted.',
  }),
)

export const AccessKey = record('AccessKey', {
  id: Uuid,
  name: DisplayName,
  kind: Type.Enum([...keyKinds], {
    description:
      '`bearer` for a key that is sent with each request; `signing` for a key that signs requests to the compatible API.',
  }),
  role: Type.Enum(['read', 'write', ...roles], {
    description: '`read` or `write` for a project key; a role for an organization key.',
  }),
  prefix: Type.String({
    description:
      'The first characters of the key, to identify it. For a signing key, this is the access key id.',
    examples: ['slp_Xy12Ab34'],
  }),
  created_by: Type.String({
    description: 'The user who created the key, directly or with another key. Empty if unknown.',
  }),
  parent_id: Type.String({
    ...UuidOrEmpty,
    description: 'The key that created this key. Empty if a signed-in user created it.',
  }),
  created_at: NonEmptyTimestamp,
  expires_at: Timestamp,
  last_used_at: Timestamp,
  allowed_cidrs: AllowedCidrs,
})
export type AccessKey = Static<typeof AccessKey>

export const AccessKeyCreated = record('AccessKeyCreated', {
  ...AccessKey.properties,
  secret: Type.String({
    description:
      'The key itself, `slp_<8 characters>_<43 characters>`; for a signing key, the secret key, 43 characters in base64url. It is shown only once, when the key is created.',
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
    description: 'The ids of the keys that were revoked together with this key.',
  }),
})

/** Part of the description of every route that creates a key. */
export const childKeyDescription =
  'A key that is created with another key (its parent) cannot exceed the parent’s role, `expires_at` and `allowed_cidrs`; a request for more fails with 400. If these fields are left out, the values of the parent key apply.'

export const Member = record('Member', {
  user_id: Uuid,
  email: Type.String(),
  role: Type.Enum([...roles]),
  state: Type.Enum(['active', 'invited']),
  created_at: NonEmptyTimestamp,
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
