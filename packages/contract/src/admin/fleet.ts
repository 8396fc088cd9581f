import Type, { type Static, type TSchema } from 'typebox'
import { Image, Price, Quota } from '../catalogue.ts'
import { EventList, EventListQuery } from '../events.ts'
import { hostNamePattern, imageNamePattern, imageSourcePattern } from '../names.ts'
import { Operation } from '../operations.ts'
import { Organization, OrganizationQuota, Project } from '../organizations.ts'
import { defineRoutes } from '../route.ts'
import {
  body,
  DisplayName,
  Email,
  Empty,
  PageQuery,
  PlainText,
  pagedList,
  pageQuery,
  record,
  Timestamp,
  Usd,
  Uuid,
  wholeList,
} from '../schema.ts'
import { gpuStates, hostStates, operationStates, paymentStates, roles, vmStates } from '../states.ts'
import { organizationQuotaNames, quotaNames } from '../vm-types.ts'

export const Gpu = record('Gpu', {
  id: Uuid,
  model: Type.String(),
  pci_address: Type.String({ examples: ['0000:41:00.0'] }),
  numa_node: Type.Integer(),
  state: Type.Enum([...gpuStates]),
  vm_id: Type.String({ description: 'Empty when no VM holds it.' }),
})
export type Gpu = Static<typeof Gpu>

export const HostVm = record('HostVm', {
  id: Uuid,
  name: Type.String(),
  state: Type.Enum([...vmStates]),
  project_id: Uuid,
  project_name: Type.String(),
  organization_name: Type.String(),
})
export type HostVm = Static<typeof HostVm>

export const Host = record('Host', {
  id: Uuid,
  name: Type.String(),
  location: Type.String(),
  engine: Type.Enum(['simulated', 'qemu', 'incus']),
  schedulable: Type.Boolean(),
  state: Type.Enum([...hostStates]),
  last_report_at: Timestamp,
  forgotten_at: Timestamp,
  capabilities: Type.Record(Type.String(), Type.Unknown()),
  gpus: Type.Array(Gpu),
  vms: Type.Array(HostVm, { description: 'The VMs that live on it: it is drained when there are none.' }),
})
export type Host = Static<typeof Host>

export const AdminLocation = record('AdminLocation', {
  name: Type.String(),
  region: Type.String(),
  zone: Type.String(),
  description: Type.String(),
  engine: Type.Enum(['simulated', 'qemu', 'incus']),
  storage: Type.Enum(['shared', 'local']),
  public_ipv4: Type.String(),
})

export const AdminOrganization = record('AdminOrganization', {
  ...Organization.properties,
  suspended: Type.Boolean(),
  payment_state: Type.Enum([...paymentStates], {
    description: 'Whether there has been a payment method, and whether the present one works.',
  }),
  month_to_date_usd: Usd,
  projects: Type.Integer({ description: 'How many it has.' }),
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

export const AdminOperation = record('AdminOperation', {
  ...Operation.properties,
  project_id: Uuid,
  is_stuck: Type.Boolean(),
  step: Type.String({ description: 'The step that is under way.' }),
  attempts: Type.Integer(),
  error: Type.String({ description: 'Of the last attempt.' }),
})

export const FamilyCapacity = record('FamilyCapacity', {
  location: Type.String(),
  family: Type.String(),
  total: Type.Integer(),
  free: Type.Integer(),
  claimed: Type.Integer(),
  quarantined: Type.Integer(),
  largest_type: Type.String({ description: 'The largest type that still fits; empty when none does.' }),
})

const ImageName = Type.String({
  format: 'image-name',
  pattern: imageNamePattern,
  examples: ['ubuntu24.04-nvidia:latest'],
})
/** No slash: a source names a file, it does not lead to one. */
const ImageSourceValue = Type.Union([
  Type.String({ format: 'image-source', pattern: imageSourcePattern, maxLength: 128 }),
  Type.Integer({ minimum: 0 }),
])
const LocationNames = Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: 100 })

const QuotaLimit = Type.Integer({ minimum: 0, maximum: 1_000_000_000 })
const quotaItems = <Name extends string, Max extends TSchema>(names: readonly Name[], max: Max) =>
  Type.Array(Type.Object({ name: Type.Enum([...names]), max }, { additionalProperties: false }), {
    minItems: 1,
    maxItems: 20,
  })

export const adminRoutes = defineRoutes({
  adminHostList: {
    method: 'GET',
    path: '/v0.1/admin/hosts',
    tag: 'Operators',
    summary: 'List hosts with their GPUs',
    access: 'operator',
    query: Type.Object({
      ...pageQuery,
      location: Type.Optional(Type.String({ maxLength: 100 })),
      state: Type.Optional(Type.Enum([...hostStates])),
    }),
    answer: pagedList('HostList', Host),
  },
  adminHostCreate: {
    method: 'POST',
    path: '/v0.1/admin/hosts',
    tag: 'Operators',
    summary: 'Register a host',
    description:
      'Its GPUs appear with its first report. In a simulated location `gpus` describes the host to simulate.',
    access: 'operator',
    body: body('HostCreate', {
      name: Type.String({ format: 'host-name', pattern: hostNamePattern }),
      location: Type.String({ minLength: 1, maxLength: 100 }),
      gpus: Type.Optional(
        Type.Object(
          {
            model: Type.String({ minLength: 1, maxLength: 100 }),
            count: Type.Integer({ minimum: 1, maximum: 16 }),
          },
          { additionalProperties: false },
        ),
      ),
    }),
    answer: Host,
    errors: ['already_exists'],
  },
  adminHostGet: {
    method: 'GET',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Read a host',
    access: 'operator',
    answer: Host,
  },
  adminHostUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Open or close a host for new VMs',
    access: 'operator',
    body: body('HostUpdate', { schedulable: Type.Boolean() }),
    answer: Host,
  },
  adminHostDrain: {
    method: 'POST',
    path: '/v0.1/admin/hosts/{host_id}/drain',
    tag: 'Operators',
    summary: 'Drain a host',
    description:
      'No new VMs; the tenants on it are told by an event; `drained` when the last VM has gone. Never stops a VM.',
    access: 'operator',
    answer: Host,
    errors: ['conflict'],
  },
  adminHostForget: {
    method: 'POST',
    path: '/v0.1/admin/hosts/{host_id}/forget',
    tag: 'Operators',
    summary: 'Declare a host lost for good',
    isDestructive: true,
    description:
      'Only one that is down. Its VMs are without OS disk from then on, disks that live on it are deleted, its GPUs are `gone`, VMs that were deleted while it was away let go of disks and addresses, and its reports are refused until it is registered anew.',
    access: 'operator',
    answer: Host,
    errors: ['conflict'],
  },
  adminHostDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/hosts/{host_id}',
    tag: 'Operators',
    summary: 'Remove an empty host',
    access: 'operator',
    answer: Empty,
    errors: ['conflict'],
  },
  adminGpuUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/gpus/{gpu_id}',
    tag: 'Operators',
    summary: 'Quarantine or free a GPU',
    access: 'operator',
    body: body('GpuUpdate', { state: Type.Enum(['free', 'quarantined']) }),
    answer: Gpu,
    errors: ['conflict'],
  },
  adminImageList: {
    method: 'GET',
    path: '/v0.1/admin/images',
    tag: 'Operators',
    summary: 'List images',
    access: 'operator',
    answer: wholeList('AdminImageList', Image),
  },
  adminImageCreate: {
    method: 'POST',
    path: '/v0.1/admin/images',
    tag: 'Operators',
    summary: 'Import an image',
    access: 'operator',
    body: body('ImageCreate', {
      name: ImageName,
      description: Type.Optional(PlainText({ maxLength: 500 })),
      tags: Type.Optional(Type.Array(PlainText({ minLength: 1, maxLength: 60 }), { maxItems: 30 })),
      locations: LocationNames,
      source: Type.Optional(
        Type.Record(Type.String({ maxLength: 60 }), ImageSourceValue, {
          maxProperties: 20,
          description:
            'Names an image that the engine registered, by members of its source such as `file`; the rest is taken from there. Plain names, no paths.',
        }),
      ),
    }),
    answer: Image,
    errors: ['already_exists'],
  },
  adminImageUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/images/{image_id}',
    tag: 'Operators',
    summary: 'Change where an image can be used',
    access: 'operator',
    body: body('ImageUpdate', { locations: LocationNames }),
    answer: Image,
  },
  adminImageDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/images/{image_id}',
    tag: 'Operators',
    summary: 'Remove an image',
    access: 'operator',
    answer: Empty,
    errors: ['conflict'],
  },
  adminLocationList: {
    method: 'GET',
    path: '/v0.1/admin/locations',
    tag: 'Operators',
    summary: 'List locations',
    access: 'operator',
    answer: wholeList('AdminLocationList', AdminLocation),
  },
  adminPriceList: {
    method: 'GET',
    path: '/v0.1/admin/prices',
    tag: 'Operators',
    summary: 'List prices in force',
    access: 'operator',
    answer: wholeList('AdminPriceList', Price),
  },
  adminPriceSet: {
    method: 'PUT',
    path: '/v0.1/admin/prices',
    tag: 'Operators',
    summary: 'Set prices, valid from now',
    description: 'Products that are not named keep their price.',
    access: 'operator',
    body: body('PriceSet', {
      items: Type.Array(Type.Object({ ...Price.properties }, { additionalProperties: false }), {
        minItems: 1,
        maxItems: 100,
      }),
    }),
    answer: wholeList('PriceSetAnswer', Price),
  },
  adminQuotaList: {
    method: 'GET',
    path: '/v0.1/admin/quotas',
    tag: 'Operators',
    summary: 'List the quotas of a project',
    access: 'operator',
    query: Type.Object({ project_id: Uuid }),
    answer: wholeList('AdminQuotaList', Quota),
    auditsReadOf: 'project_id',
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
  adminOperationList: {
    method: 'GET',
    path: '/v0.1/admin/operations',
    tag: 'Operators',
    summary: 'List operations of all tenants',
    access: 'operator',
    query: Type.Object({
      ...pageQuery,
      stuck: Type.Optional(Type.Boolean()),
      state: Type.Optional(Type.Enum([...operationStates])),
    }),
    answer: pagedList('AdminOperationList', AdminOperation),
  },
  adminOperationRetry: {
    method: 'POST',
    path: '/v0.1/admin/operations/{operation_id}/retry',
    tag: 'Operators',
    summary: 'Try a stuck operation again',
    access: 'operator',
    answer: AdminOperation,
    errors: ['conflict'],
  },
  adminOperationAbandon: {
    method: 'POST',
    path: '/v0.1/admin/operations/{operation_id}/abandon',
    tag: 'Operators',
    summary: 'Give a stuck operation up',
    isDestructive: true,
    description:
      'It ends as failed; what its undo could not remove is left to the reconcilers and to the operator.',
    access: 'operator',
    answer: AdminOperation,
    errors: ['conflict'],
  },
  adminCapacityList: {
    method: 'GET',
    path: '/v0.1/admin/capacity',
    tag: 'Operators',
    summary: 'GPUs by location and family',
    access: 'operator',
    answer: wholeList('FamilyCapacityList', FamilyCapacity),
  },
  adminEventList: {
    method: 'GET',
    path: '/v0.1/admin/events',
    tag: 'Operators',
    summary: 'The audit log of all tenants and operators',
    description: 'Streams like the events of a project.',
    access: 'operator',
    query: EventListQuery,
    answer: EventList,
    alsoAnswers: 'text/event-stream',
    auditsReadOf: 'resource_id',
  },
})
