import Type, { type Static } from 'typebox'
import { defineRoutes } from './route.ts'
import {
  body,
  DisplayName,
  Empty,
  Labels,
  labelQuery,
  PageQuery,
  pagedList,
  record,
  Timestamp,
  Usd,
  UtcDate,
  Uuid,
  wholeList,
} from './schema.ts'
import { meteredTypes, paymentStates } from './states.ts'
import { organizationQuotaNames } from './vm-types.ts'

export const Organization = record('Organization', {
  id: Uuid,
  name: Type.String({ examples: ['Harbour Labs'] }),
  payment_customer_id: Type.String({
    description: 'The id of the customer at the payment provider. Empty until the customer is created.',
  }),
  require_totp: Type.Boolean({
    description: 'Whether members need two-factor authentication to access this organization.',
  }),
})
export type Organization = Static<typeof Organization>

export const Project = record('Project', {
  id: Uuid,
  name: Type.String({ examples: ['default'] }),
  version: Type.String({ examples: ['v0.1'] }),
  organization_id: Uuid,
  labels: Labels,
})
export type Project = Static<typeof Project>

export const BillingSession = record('BillingSession', {
  url: Type.String({ description: 'A link to the billing dashboard. It works for 15 minutes.' }),
})

export const PaymentMethod = record('PaymentMethod', {
  state: Type.Enum([...paymentStates]),
  brand: Type.String({
    description:
      'The brand of the card. If there is no payment method, `brand`, `last4` and `expires_month` are empty.',
  }),
  last4: Type.String(),
  expires_month: Type.String({ description: 'The last month in which the payment method is valid.' }),
})
export type PaymentMethod = Static<typeof PaymentMethod>

export const OrganizationQuota = record('OrganizationQuota', {
  name: Type.Enum([...organizationQuotaNames]),
  max: Type.Integer(),
  used: Type.Integer({ description: 'How much all projects use together.' }),
  available: Type.Integer(),
})
export type OrganizationQuota = Static<typeof OrganizationQuota>

export const Costs = record('Costs', {
  usd_per_hour: Usd,
  today_usd: Type.Number({ description: 'US dollars since midnight UTC.' }),
  month_to_date_usd: Usd,
  last_month_usd: Usd,
  forecast_usd: Type.Number({
    description:
      'US dollars for the whole month if the current resources are kept until the end of the month.',
  }),
  by_product: Type.Array(Type.Object({ product_name: Type.String(), usd: Usd })),
  as_of: Timestamp,
})
export type Costs = Static<typeof Costs>

export const ResourceCost = record('ResourceCost', {
  resource_id: Uuid,
  usd: Type.Number({
    description:
      'US dollars since the resource was first billed. Also available after the resource is deleted.',
  }),
  as_of: Timestamp,
})
export type ResourceCost = Static<typeof ResourceCost>

export const Invoice = record('Invoice', {
  id: Uuid,
  period_start: Timestamp,
  period_end: Timestamp,
  state: Type.Enum(['open', 'issued', 'paid']),
  usd: Usd,
  lines: Type.Array(
    Type.Object({
      project_id: Uuid,
      product_name: Type.String(),
      quantity: Type.Number(),
      unit: Type.Enum(['vm_hour', 'gb_hour', 'gpu_hour', 'address_hour']),
      usd: Usd,
    }),
  ),
})
export type Invoice = Static<typeof Invoice>

const budgetLimit = 'The monthly limit in USD. Null means that there is no limit.'
const hardStop =
  'If true, nothing that costs money can be created or started after the monthly limit is spent. Existing resources are not affected.'

export const Budget = record('Budget', {
  monthly_usd: Type.Union([Type.Number({ minimum: 0 }), Type.Null()], { description: budgetLimit }),
  hard_stop: Type.Boolean({ description: hardStop }),
  spent_usd: Usd,
})
export type Budget = Static<typeof Budget>

export const UsageItem = record('UsageItem', {
  date: UtcDate,
  project_id: Uuid,
  location: Type.String(),
  resource_type: Type.Enum([...meteredTypes]),
  product_name: Type.String({ examples: ['a100.1x'] }),
  quantity: Type.Number(),
  unit: Type.Enum(['vm_hour', 'gb_hour', 'gpu_hour', 'address_hour']),
  usd: Type.Union([Type.Number(), Type.Null()], { description: 'Null if no price is set.' }),
  resource_id: Type.Optional(
    Type.String({
      description:
        'With `group_by=resource`: the id of the resource. For the billed part of an OS disk, the id of the OS disk. Empty for days before usage was recorded per resource.',
    }),
  ),
  resource_name: Type.Optional(
    Type.String({ description: 'With `group_by=resource`: the name of the resource.' }),
  ),
  labels: Type.Optional(
    Type.Unsafe<Labels>({
      ...Labels,
      description: 'With `group_by=resource`: the labels at the end of the day.',
    }),
  ),
  reservation_id: Type.Optional(
    Type.String({
      description:
        'With `group_by=resource`: the reservation that the VM used. Empty for on-demand usage, and for other resources.',
    }),
  ),
  label_value: Type.Optional(
    Type.String({
      description:
        'With `group_by=label:<key>`: the value of that label. Empty for resources without the label.',
    }),
  ),
})
export type UsageItem = Static<typeof UsageItem>

export const UsageList = record('UsageList', { items: Type.Array(UsageItem), updated_at: Timestamp })
export const UsageQuery = Type.Object({
  start_date: Type.Optional(Type.String({ ...UtcDate, description: 'The first UTC day.' })),
  end_date: Type.Optional(Type.String({ ...UtcDate, description: 'The last UTC day.' })),
  location: Type.Optional(Type.String({ maxLength: 100 })),
  resource_type: Type.Optional(Type.Enum([...meteredTypes])),
  group_by: Type.Optional(
    Type.String({
      maxLength: 80,
      format: 'usage-grouping',
      description:
        '`resource` (for at most 31 days) or `label:<key>`. By default, usage is grouped by product and location.',
      examples: ['label:team'],
    }),
  ),
})

const usageDescription =
  'Usage is recorded per UTC day, shortly after the day ends. `start_date` and `end_date` are both included. The default is the last 31 days; the maximum is 366 days.'

export const ProjectSummary = record('ProjectSummary', {
  id: Uuid,
  name: Type.String({ examples: ['default'] }),
  vms: Type.Integer({ description: 'The number of VMs, running or stopped.' }),
  running_vms: Type.Integer({ description: 'The number of running VMs.' }),
  usd_per_hour: Type.Number({ description: 'The current hourly cost, including disks.' }),
  month_to_date_usd: Usd,
})
export type ProjectSummary = Static<typeof ProjectSummary>

export const organizationRoutes = defineRoutes({
  organizationList: {
    method: 'GET',
    path: '/v0.1/organizations',
    tag: 'Organizations',
    summary: 'List organizations that the caller can see',
    access: 'caller',
    response: Type.Array(Organization),
  },
  organizationGet: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}',
    tag: 'Organizations',
    summary: 'Read an organization',
    access: 'visible',
    worksSuspended: true,
    response: Organization,
  },
  organizationUpdate: {
    method: 'PATCH',
    path: '/v0.1/organizations/{organization_id}',
    tag: 'Organizations',
    summary: 'Rename an organization, or require two-factor authentication from its members',
    description:
      'Only an owner who is signed in with two-factor authentication can require it. Members who signed in without it then get 403 `totp_enrolment_required`. Access keys are not affected.',
    access: 'owner',
    body: body('OrganizationUpdate', {
      name: Type.Optional(DisplayName),
      require_totp: Type.Optional(Type.Boolean()),
    }),
    response: Organization,
    errors: ['already_exists'],
  },
  organizationBilling: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/billing',
    tag: 'Organizations',
    summary: 'Get a temporary link to the billing dashboard',
    description:
      'The link stops working when the credential that requested it expires or is revoked. A link for a write key shows only the costs of its project, and accepts a payment method only while none is active.',
    access: 'owner',
    alsoWriteKeys: true,
    worksSuspended: true,
    response: BillingSession,
    noStore: true,
  },
  organizationPaymentMethod: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/payment-method',
    tag: 'Organizations',
    summary: 'Read the payment method',
    description: 'To change the payment method, open the billing dashboard.',
    access: 'owner',
    worksSuspended: true,
    response: PaymentMethod,
  },
  organizationCosts: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/costs',
    tag: 'Organizations',
    summary: 'Read the current and monthly cost of the organization',
    access: 'viewer',
    worksSuspended: true,
    response: Costs,
  },
  organizationProjectList: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/projects',
    tag: 'Organizations',
    summary: 'List projects with their running resources and costs',
    access: 'viewer',
    response: wholeList('ProjectSummaryList', ProjectSummary),
  },
  organizationInvoices: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/invoices',
    tag: 'Organizations',
    summary: 'List invoices',
    access: 'viewer',
    worksSuspended: true,
    query: PageQuery,
    response: pagedList('InvoiceList', Invoice),
  },
  organizationQuotaList: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/quotas',
    tag: 'Organizations',
    summary: 'List quotas of the organization and their usage',
    description: 'The limits apply to all projects together. A project can have its own, lower limits.',
    access: 'viewer',
    response: wholeList('OrganizationQuotaList', OrganizationQuota),
  },
  organizationUsage: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/usage',
    tag: 'Organizations',
    summary: 'List daily usage of all projects',
    description: usageDescription,
    access: 'viewer',
    query: UsageQuery,
    response: UsageList,
    alsoReturns: 'text/csv',
  },
  projectList: {
    method: 'GET',
    path: '/v0.1/projects',
    tag: 'Projects',
    summary: 'List projects that the caller can see',
    access: 'caller',
    query: Type.Object(labelQuery),
    response: Type.Array(Project),
  },
  projectCreate: {
    method: 'POST',
    path: '/v0.1/projects',
    tag: 'Projects',
    summary: 'Create a project',
    description:
      'Also creates a default network, a subnet in each location and the default firewall rules. The caller must have the role `admin` in the organization.',
    access: 'caller',
    body: body('ProjectCreate', {
      name: DisplayName,
      organization_id: Uuid,
      labels: Type.Optional(Labels),
    }),
    response: Project,
    errors: ['permission_denied', 'not_found', 'already_exists', 'quota_exceeded'],
  },
  projectGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}',
    tag: 'Projects',
    summary: 'Read a project',
    access: 'viewer',
    response: Project,
  },
  projectUpdate: {
    method: 'PATCH',
    path: '/v0.1/projects/{project_id}',
    tag: 'Projects',
    summary: 'Rename a project, or replace its labels',
    access: 'admin',
    body: body('ProjectUpdate', { name: Type.Optional(DisplayName), labels: Type.Optional(Labels) }),
    response: Project,
    errors: ['already_exists'],
  },
  projectDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}',
    tag: 'Projects',
    summary: 'Delete an empty project',
    access: 'admin',
    response: Empty,
    errors: ['conflict'],
  },
  projectCosts: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/costs',
    tag: 'Projects',
    summary: 'Read the current and monthly cost of the project',
    access: 'viewer',
    response: Costs,
  },
  projectResourceCost: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/costs/{resource_id}',
    tag: 'Projects',
    summary: 'Read the cost of a VM or disk, even after its deletion',
    access: 'viewer',
    response: ResourceCost,
  },
  projectUsage: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/usage',
    tag: 'Projects',
    summary: 'List daily usage',
    description: usageDescription,
    access: 'viewer',
    query: UsageQuery,
    response: UsageList,
    alsoReturns: 'text/csv',
  },
  budgetGet: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/budget',
    tag: 'Projects',
    summary: 'Read the monthly budget',
    access: 'viewer',
    response: Budget,
  },
  budgetSet: {
    method: 'PUT',
    path: '/v0.1/projects/{project_id}/budget',
    tag: 'Projects',
    summary: 'Set the monthly budget',
    access: 'admin',
    body: body('BudgetSet', {
      monthly_usd: Type.Union([Type.Number({ minimum: 0, maximum: 1_000_000_000 }), Type.Null()], {
        description: budgetLimit,
      }),
      hard_stop: Type.Optional(Type.Boolean({ description: hardStop })),
      spent_usd: Type.Optional(
        Type.Number({
          description: 'Ignored. Accepted so that you can send back the budget as you read it.',
        }),
      ),
    }),
    response: Budget,
  },
})
