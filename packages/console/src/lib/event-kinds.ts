import { eventTypes } from '@slipway/contract/event-types'
import { eventTypeWords } from './format.ts'

/** What can happen in a project, by the kind of resource that it happens to. */
const kinds = {
  vm: 'VMs',
  disk: 'Disks',
  firewall_rule: 'Firewall rules',
  network: 'Networks',
  subnet: 'Subnets',
  operation: 'Operations',
  access_key: 'Access keys',
  ssh_key: 'SSH keys',
  webhook: 'Webhooks',
  budget: 'Budget',
}

export const projectEventKinds: { kind: string; words: string; types: string[] }[] = Object.entries(
  kinds,
).map(([kind, words]) => ({
  kind,
  words,
  types: eventTypes.filter((type) => type.startsWith(`${kind}.`)),
}))

export const projectEventTypes: string[] = projectEventKinds.flatMap(({ types }) => types)

/** Says which events a webhook asks for: "Disks, VM crashed" for `disk.*` and `vm.crashed`. */
export const eventSelectorWords = (selectors: string[]): string =>
  selectors.length === 0 || selectors.includes('*')
    ? 'all'
    : selectors
        .map((selector) => {
          const kind = projectEventKinds.find(({ kind }) => selector === `${kind}.*`)
          return kind?.words ?? eventTypeWords(selector)
        })
        .join(', ')
