import Type, { type Static, type TSchema } from 'typebox'
import { Quota } from '../catalogue.ts'
import { Organization, OrganizationQuota, Project } from '../organizations.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  DisplayName,
  Email,
  NonEmptyTimestamp,
  PageQuery,
  pagedList,
  pageQuery,
  record,
  Timestamp,
  Usd,
  Uuid,
  wholeList,
} from '../schema.ts'
import { paymentStates, roles } from '../states.ts'
import { organizationQuotaNames, quotaNames } from '../vm-types.ts'

/** Operator routes for organizations, projects, users and quotas. */

export const AdminOrganization = record('AdminOrganization', {
  ...Organization.properties,
  suspended: Type.Boolean(),
  payment_state: Type.Enum([...paymentStates], {
    description: 'The state of the payment method; `never` if the organization has never had one.',
  }),
  month_to_date_usd: Usd,
  projects: Type.Integer({ description: 'The number of projects.' }),
  vms: Type.Integer({ description: 'The number of VMs, running or stopped.' }),
  created_at: NonEmptyTimestamp,
})

export const AdminProject = record('AdminProject', {
  ...Project.properties,
  organization_name: Type.String(),
  vms: Type.Integer({ description: 'The number of VMs, running or stopped.' }),
  running_vms: Type.Integer({ description: 'The number of running VMs.' }),
  month_to_date_usd: Usd,
})

export const AdminUser = record('AdminUser', {
  id: Uuid,
  email: Type.String(),
  is_operator: Type.Boolean(),
  suspended: Type.Boolean(),
  state: Type.Enum(['active', 'invited']),
  created_at: NonEmptyTimestamp,
  last_sign_in_at: Type.String({
    ...Timestamp,
    description: 'When the user last signed in. Empty if there is no record of a sign-in.',
  }),
})
export type AdminUser = Static<typeof AdminUser>

/** A user in a list, which can be limited to one organization. */
const ListedUser = record('ListedUser', {
  ...AdminUser.properties,
  role: Type.Optional(
    Type.Enum([...roles], { description: 'With `organization_id`: the role in this organization.' }),
  ),
})

export const AdminUserDetails = record('AdminUserDetails', {
  ...AdminUser.properties,
  has_totp: Type.Boolean({ description: 'Whether the user has two-factor authentication.' }),
  has_password: Type.Boolean({ description: 'False for an account that uses single sign-on.' }),
  sessions: Type.Integer({ description: 'The number of current sessions.' }),
  memberships: Type.Array(
    Type.Object({ organization_id: Uuid, organization_name: Type.String(), role: Type.Enum([...roles]) }),
  ),
})
export type AdminUserDetails = Static<typeof AdminUserDetails>

export const AdminUserCreated = record('AdminUserCreated', {
  ...AdminUser.properties,
  invite_url: Type.String({
    description:
      'The link that accepts the invitation. Only this response shows it; send it only to the invited person.',
  }),
})

const QuotaLimit = Type.Integer({ minimum: 0, maximum: 1_000_000_000 })
const quotaItems = <Name extends string, Max extends TSchema>(names: readonly Name[], max: Max) =>
  Type.Array(Type.Object({ name: Type.Enum([...names]), max }, { additionalProperties: false }), {
    minItems: 1,
    maxItems: 50,
  })

export const adminTenantRoutes = defineRoutes({
  adminQuotaList: {
    method: 'GET',
    path: '/v0.1/admin/quotas',
    tag: 'Operators',
    summary: 'List the quotas of a project',
    access: 'operator',
    query: Type.Object({ project_id: Type.String({ ...Uuid, description: 'The project.' }) }),
    response: wholeList('AdminQuotaList', Quota),
    tenantIn: 'project_id',
  },
  adminQuotaSet: {
    method: 'PUT',
    path: '/v0.1/admin/quotas',
    tag: 'Operators',
    summary: 'Set quotas of a project',
    description: 'The quotas of the organization also apply. `max: null` removes the limit of the project.',
    access: 'operator',
    body: body('QuotaSet', {
      project_id: Uuid,
      items: quotaItems(quotaNames, Type.Union([QuotaLimit, Type.Null()])),
    }),
    response: wholeList('QuotaSetResult', Quota),
  },
  adminOrganizationQuotaList: {
    method: 'GET',
    path: '/v0.1/admin/organizations/{organization_id}/quotas',
    tag: 'Operators',
    summary: 'List the quotas of an organization',
    access: 'operator',
    tenantIn: 'organization_id',
    response: wholeList('AdminOrganizationQuotaList', OrganizationQuota),
  },
  adminOrganizationQuotaSet: {
    method: 'PUT',
    path: '/v0.1/admin/organizations/{organization_id}/quotas',
    tag: 'Operators',
    summary: 'Set quotas of an organization',
    description:
      'The limits apply to all projects of the organization together. Quotas that are not listed do not change.',
    access: 'operator',
    body: body('OrganizationQuotaSet', { items: quotaItems(organizationQuotaNames, QuotaLimit) }),
    response: wholeList('OrganizationQuotaSetResult', OrganizationQuota),
  },
  adminOrganizationList: {
    method: 'GET',
    path: '/v0.1/admin/organizations',
    tag: 'Operators',
    summary: 'List organizations',
    access: 'operator',
    isInventory: true,
    query: PageQuery,
    response: pagedList('AdminOrganizationList', AdminOrganization),
  },
  adminOrganizationCreate: {
    method: 'POST',
    path: '/v0.1/admin/organizations',
    tag: 'Operators',
    summary: 'Create an organization',
    access: 'operator',
    body: body('OrganizationCreate', { name: DisplayName }),
    response: Organization,
  },
  adminOrganizationUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/organizations/{organization_id}',
    tag: 'Operators',
    summary: 'Suspend or restore an organization',
    isDestructive: true,
    access: 'operator',
    body: body('OrganizationSuspension', {
      suspended: Type.Boolean(),
      stop_vms: Type.Optional(
        Type.Boolean({
          description:
            'Only with `suspended: true`: also stops the VMs of the organization, including VMs that start later.',
        }),
      ),
    }),
    response: AdminOrganization,
  },
  adminProjectList: {
    method: 'GET',
    path: '/v0.1/admin/projects',
    tag: 'Operators',
    summary: 'List projects of all organizations',
    access: 'operator',
    isInventory: true,
    query: PageQuery,
    response: pagedList('AdminProjectList', AdminProject),
  },
  adminUserList: {
    method: 'GET',
    path: '/v0.1/admin/users',
    tag: 'Operators',
    summary: 'List users',
    access: 'operator',
    query: Type.Object({
      ...pageQuery,
      organization_id: Type.Optional(
        Type.String({ ...Uuid, description: 'Only members and invited members of this organization.' }),
      ),
    }),
    response: pagedList('AdminUserList', ListedUser),
    tenantIn: 'organization_id',
  },
  adminUserCreate: {
    method: 'POST',
    path: '/v0.1/admin/users',
    tag: 'Operators',
    summary: 'Invite a user',
    description:
      'Accepting the invitation with the link creates an account, or adds the role or operator rights to an existing account. Until then, `id` is the id of the invitation. A new invitation to the same address replaces the link.',
    access: 'operator',
    body: body('UserCreate', {
      email: Email,
      organization_id: Type.Optional(Uuid),
      role: Type.Optional(Type.Enum([...roles])),
      is_operator: Type.Optional(Type.Boolean()),
    }),
    response: AdminUserCreated,
    errors: ['already_exists', 'quota_exceeded'],
    noStore: true,
  },
  adminUserGet: {
    method: 'GET',
    path: '/v0.1/admin/users/{user_id}',
    tag: 'Operators',
    summary: 'Read a user and the user’s organizations',
    access: 'operator',
    response: AdminUserDetails,
  },
  adminUserUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/users/{user_id}',
    tag: 'Operators',
    summary: 'Suspend or restore a user, or remove operator rights',
    isDestructive: true,
    description:
      'Keys that a suspended user created do not work until the user is restored. `is_operator: false` removes operator rights and revokes the operator keys that this user created; this is not possible for the last operator. To grant operator rights, invite the user.',
    access: 'operator',
    body: body('UserUpdate', {
      suspended: Type.Optional(Type.Boolean()),
      is_operator: Type.Optional(Type.Literal(false)),
    }),
    response: AdminUser,
    errors: ['conflict'],
  },
})
