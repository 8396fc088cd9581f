import { eventTypes } from '@slipway/contract/event-types'

/** What can happen in a project, by the kind of resource that it happens to. */
const kinds = [
  'vm',
  'disk',
  'firewall_rule',
  'network',
  'subnet',
  'operation',
  'access_key',
  'ssh_key',
  'webhook',
  'budget',
]

export const projectEventKinds: { kind: string; types: string[] }[] = kinds.map((kind) => ({
  kind,
  types: eventTypes.filter((type) => type.startsWith(`${kind}.`)),
}))

export const projectEventTypes: string[] = projectEventKinds.flatMap(({ types }) => types)
