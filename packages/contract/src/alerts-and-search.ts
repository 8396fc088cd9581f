import Type, { type Static } from 'typebox'
import { defineRoutes } from './route.ts'
import { body, Email, record, Timestamp, UuidOrEmpty, wholeList } from './schema.ts'

/** Kinds of alerts, the most important first. */
export const alertKinds = [
  'clock',
  'location_unread',
  'host_lost',
  'host_problem',
  'gpu_fault',
  'mass_gpu_fault',
  'unhealthy',
  'crashed',
  'unreachable',
  'creation_failed',
  'maintenance',
  'draining',
  'reservation_late',
  'quota_request',
  'webhook_failing',
  'stuck',
  'payment',
  'budget',
  'expiring',
] as const
export type AlertKind = (typeof alertKinds)[number]

export const Alert = record('Alert', {
  kind: Type.Enum([...alertKinds]),
  resource_type: Type.String({ examples: ['vm'] }),
  resource_id: Type.String({ examples: ['0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7b01'] }),
  name: Type.String({ description: 'The name of the resource.', examples: ['train-7'] }),
  project_id: UuidOrEmpty,
  organization_id: UuidOrEmpty,
  since: Timestamp,
  message: Type.String({
    description: 'What happened, and what to do about it.',
    examples: ['train-7 has crashed: reset it, or delete it.'],
  }),
})
export type Alert = Static<typeof Alert>

/** Types of resources that a search can find. */
export const searchableTypes = [
  'vm',
  'disk',
  'snapshot',
  'custom_image',
  'instance_group',
  'instance_template',
  'firewall_rule',
  'network',
  'subnet',
  'address',
  'project',
  'organization',
  'host',
  'user',
] as const
export type SearchableType = (typeof searchableTypes)[number]

export const SearchResult = record('SearchResult', {
  resource_type: Type.Enum([...searchableTypes]),
  resource_id: Type.String({ examples: ['0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7b01'] }),
  name: Type.String({ examples: ['train-7'] }),
  state: Type.String({
    description:
      'Empty if the resource has no state. `FAILED` for a VM whose creation failed in the last 24 hours.',
    examples: ['STATE_RUNNING'],
  }),
  location: Type.String({ description: 'Empty if the resource has no location.', examples: ['us-east1-a'] }),
  address: Type.String({
    description:
      'For a VM, its public address, or its private address if it has no public one; for a reserved address, the address; for a network or subnet, its CIDR block.',
    examples: ['198.18.0.7'],
  }),
  project_id: UuidOrEmpty,
  project_name: Type.String({ examples: ['default'] }),
  organization_id: UuidOrEmpty,
  organization_name: Type.String({ examples: ['Harbour Labs'] }),
})
export type SearchResult = Static<typeof SearchResult>

export const suggestionKinds = ['idle_vm', 'detached_disk'] as const
/** A VM is idle if no sample in this period shows a GPU utilization at or above the limit. */
export const idleSuggestion = { hours: 24, gpuPercent: 5 }
/** Newer disks are not suggested, because they are probably about to be attached. */
export const detachedSuggestionHours = 24

export const Suggestion = record('Suggestion', {
  kind: Type.Enum([...suggestionKinds]),
  resource_id: Type.String({ examples: ['0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7b01'] }),
  name: Type.String({ description: 'The name of the VM or disk.', examples: ['train-7'] }),
  usd_per_month: Type.Number({
    description: 'What the resource costs in 730 hours at the current price.',
    examples: [1058.5],
  }),
  evidence: Type.Object(
    {
      highest_gpu_utilization: Type.Optional(
        Type.Number({
          description: 'For `idle_vm`: the highest utilization of any GPU in any minute, in percent.',
          examples: [0.5],
        }),
      ),
      hours: Type.Optional(
        Type.Integer({ description: 'For `idle_vm`: the length of the examined period.', examples: [24] }),
      ),
      size_gib: Type.Optional(
        Type.Integer({ description: 'For `detached_disk`: the size of the disk.', examples: [500] }),
      ),
    },
    { description: 'The reason for the suggestion.' },
  ),
  message: Type.String({
    description: 'What was found, and what to do about it.',
    examples: ['The GPUs of train-7 were below 5% for 24 hours. Stop it, or give it an idle policy.'],
  }),
})
export type Suggestion = Static<typeof Suggestion>

const AlertList = wholeList('AlertList', Alert)
const alertDescription =
  'Sorted by time, newest first; at most 500. An alert disappears when its cause is resolved. The alert for the failed creation of a VM or instance group lasts for 24 hours, or until a VM or group with the same name exists.'

const maxAlertRecipients = 10
export const AlertRecipients = record('AlertRecipients', {
  emails: Type.Array(Type.String({ examples: ['oncall@example.com'] })),
})
export type AlertRecipients = Static<typeof AlertRecipients>

const recipientDescription =
  'Owners and admins get e-mails about budgets, payments and quota requests. The additional recipients, for example a mailing list, get the same e-mails. Nothing is sent if the service has no mail server.'

const SearchQuery = Type.Object({
  q: Type.String({
    minLength: 1,
    maxLength: 100,
    description: 'A part of a name, the beginning of an id, or an address. Letter case is ignored.',
    examples: ['train'],
  }),
})
const SearchResults = wholeList('SearchResults', SearchResult)

export const alertAndSearchRoutes = defineRoutes({
  alertList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/alerts',
    tag: 'Events',
    summary: 'List alerts of a project',
    description: alertDescription,
    access: 'viewer',
    response: AlertList,
  },
  organizationAlertList: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/alerts',
    tag: 'Events',
    summary: 'List alerts of an organization and its projects',
    description: alertDescription,
    access: 'viewer',
    response: AlertList,
  },
  alertRecipientsGet: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/alert-recipients',
    tag: 'Organizations',
    summary: 'Read the additional recipients of alerts',
    description: recipientDescription,
    access: 'admin',
    response: AlertRecipients,
  },
  alertRecipientsSet: {
    method: 'PUT',
    path: '/v0.1/organizations/{organization_id}/alert-recipients',
    tag: 'Organizations',
    summary: 'Set the additional recipients of alerts',
    description: `Replaces all additional recipients; an empty list removes them. ${recipientDescription}`,
    access: 'admin',
    body: body('AlertRecipientsSet', {
      emails: Type.Array(Email, { maxItems: maxAlertRecipients }),
    }),
    response: AlertRecipients,
  },
  adminAlertList: {
    method: 'GET',
    path: '/v0.1/admin/alerts',
    tag: 'Operators',
    summary: 'List alerts for operators',
    description: `Covers the clock, locations, hosts, GPUs, operations, reservations, quota requests and payments. ${alertDescription}`,
    access: 'operator',
    isInventory: true,
    response: AlertList,
  },
  suggestionList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/suggestions',
    tag: 'Projects',
    summary: 'List unused resources that cost money',
    description: `VMs whose GPUs were all below ${idleSuggestion.gpuPercent}% for ${idleSuggestion.hours} hours, and disks that are not attached to a VM and are more than ${detachedSuggestionHours} hours old. Sorted by cost, most expensive first; at most 100. Suggestions are advice: nothing is stopped or deleted. Missing samples never count as idle. VMs on reserved GPUs and disks with deletion protection are not included.`,
    access: 'viewer',
    response: wholeList('SuggestionList', Suggestion),
  },
  organizationSearch: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/search',
    tag: 'Organizations',
    summary: 'Search all projects by name, id or address',
    description: 'Returns the 20 best matches.',
    access: 'viewer',
    query: SearchQuery,
    response: SearchResults,
  },
  adminSearch: {
    method: 'GET',
    path: '/v0.1/admin/search',
    tag: 'Operators',
    summary: 'Search hosts, tenants, users and resources of tenants',
    description:
      'Returns the 20 best matches. VMs, custom images, snapshots and reserved addresses are found by name or full id; VMs and reserved addresses also by public address.',
    access: 'operator',
    query: SearchQuery,
    response: SearchResults,
  },
})
