import Type, { type TSchema } from 'typebox'
import { Quota } from '../catalogue.ts'
import { Organization, OrganizationQuota, Project } from '../organizations.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  DisplayName,
  Email,
  PageQuery,
  pagedList,
  record,
  Timestamp,
  Usd,
  Uuid,
  wholeList,
} from '../schema.ts'
import { paymentStates, roles } from '../states.ts'
import { organizationQuotaNames, quotaNames } from '../vm-types.ts'

/** Organizations, projects and people, and how much they may have. */

export const AdminOrganization = record('AdminOrganization', {
  ...Organization.properties,
  suspended: Type.Boolean(),
  payment_state: Type.Enum([...paymentStates], {
    description: 'Whether there has been a payment method, and whether the present one works.',
  }),
  month_to_date_usd: Usd,
  projects: Type.Integer({ description: 'How many it has.' }),
  vms: Type.Integer({ description: 'How many it has, running or not.' }),
  created_at: Timestamp,
})

export const AdminProject = record('AdminProject', {
  ...Project.properties,
  organization_name: Type.String(),
})

export const AdminUser = record('AdminUser', {
  id: Uuid,
  email: Type.String(),
  is_operator: Type.Boolean(),
  suspended: Type.Boolean(),
  state: Type.Enum(['active', 'invited']),
  created_at: Timestamp,
})

export const AdminUserCreated = record('AdminUserCreated', {
  ...AdminUser.properties,
  invite_url: Type.String({
    description: 'The link to accept, shown this once: for the invited person alone.',
  }),
})

const QuotaLimit = Type.Integer({ minimum: 0, maximum: 1_000_000_000 })
const quotaItems = <Name extends string, Max extends TSchema>(names: readonly Name[], max: Max) =>
  Type.Array(Type.Object({ name: Type.Enum([...names]), max }, { additionalProperties: false }), {
    minItems: 1,
    maxItems: 20,
  })

export const adminTenantRoutes = defineRoutes({
  adminQuotaList: {
    method: 'GET',
    path: '/v0.1/admin/quotas',
    tag: 'Operators',
    summary: 'List the quotas of a project',
    access: 'operator',
    query: Type.Object({ project_id: Uuid }),
    answer: wholeList('AdminQuotaList', Quota),
    auditsReadOf: ['project_id'],
  },
  adminQuotaSet: {
    method: 'PUT',
    path: '/v0.1/admin/quotas',
    tag: 'Operators',
    summary: 'Set quotas of a project',
    description: 'Within those of its organization. `max: null` takes a limit of the project away again.',
    access: 'operator',
    body: body('QuotaSet', {
      project_id: Uuid,
      items: quotaItems(quotaNames, Type.Union([QuotaLimit, Type.Null()])),
    }),
    answer: wholeList('QuotaSetAnswer', Quota),
  },
  adminOrganizationQuotaList: {
    method: 'GET',
    path: '/v0.1/admin/organizations/{organization_id}/quotas',
    tag: 'Operators',
    summary: 'List the quotas of an organization',
    access: 'operator',
    answer: wholeList('AdminOrganizationQuotaList', OrganizationQuota),
  },
  adminOrganizationQuotaSet: {
    method: 'PUT',
    path: '/v0.1/admin/organizations/{organization_id}/quotas',
    tag: 'Operators',
    summary: 'Set quotas of an organization',
    description: 'They hold for all its projects together. Quotas that are not named stay as they are.',
    access: 'operator',
    body: body('OrganizationQuotaSet', { items: quotaItems(organizationQuotaNames, QuotaLimit) }),
    answer: wholeList('OrganizationQuotaSetAnswer', OrganizationQuota),
  },
  adminOrganizationList: {
    method: 'GET',
    path: '/v0.1/admin/organizations',
    tag: 'Operators',
    summary: 'List organizations',
    access: 'operator',
    query: PageQuery,
    answer: pagedList('AdminOrganizationList', AdminOrganization),
  },
  adminOrganizationCreate: {
    method: 'POST',
    path: '/v0.1/admin/organizations',
    tag: 'Operators',
    summary: 'Create an organization',
    access: 'operator',
    body: body('OrganizationCreate', { name: DisplayName }),
    answer: Organization,
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
        Type.Boolean({ description: 'With `suspended`: also stops its VMs, and those that come up later.' }),
      ),
    }),
    answer: AdminOrganization,
  },
  adminProjectList: {
    method: 'GET',
    path: '/v0.1/admin/projects',
    tag: 'Operators',
    summary: 'List projects of all organizations',
    access: 'operator',
    query: PageQuery,
    answer: pagedList('AdminProjectList', AdminProject),
  },
  adminUserList: {
    method: 'GET',
    path: '/v0.1/admin/users',
    tag: 'Operators',
    summary: 'List users',
    access: 'operator',
    query: PageQuery,
    answer: pagedList('AdminUserList', AdminUser),
  },
  adminUserCreate: {
    method: 'POST',
    path: '/v0.1/admin/users',
    tag: 'Operators',
    summary: 'Invite a user',
    description:
      'The link makes an account, or gives an existing one the role or the mark, when it is redeemed; `id` is the invitation’s until then. Inviting again replaces the link.',
    access: 'operator',
    body: body('UserCreate', {
      email: Email,
      organization_id: Type.Optional(Uuid),
      role: Type.Optional(Type.Enum([...roles])),
      is_operator: Type.Optional(Type.Boolean()),
    }),
    answer: AdminUserCreated,
    errors: ['already_exists', 'quota_exceeded'],
    noStore: true,
  },
  adminUserUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/users/{user_id}',
    tag: 'Operators',
    summary: 'Suspend or restore a user, or take the operator’s mark away',
    isDestructive: true,
    description:
      'Keys that a suspended user made stop until the user is restored. With the mark go the operator keys that this user made; the last operator keeps it. The mark is given by an invitation.',
    access: 'operator',
    body: body('UserUpdate', {
      suspended: Type.Optional(Type.Boolean()),
      is_operator: Type.Optional(Type.Literal(false)),
    }),
    answer: AdminUser,
    errors: ['conflict'],
  },
})
