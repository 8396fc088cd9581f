import { eventTypes } from '@slipway/contract/event-types'
import { eventTypeText } from './format.ts'

/** The kinds of resources that have events in a project. */
const kinds = {
  vm: 'VMs',
  disk: 'Disks',
  snapshot: 'Snapshots',
  custom_image: 'Custom images',
  firewall_rule: 'Firewall rules',
  network: 'Networks',
  subnet: 'Subnets',
  address: 'Reserved addresses',
  operation: 'Operations',
  access_key: 'Access keys',
  ssh_key: 'SSH keys',
  webhook: 'Webhooks',
  budget: 'Budget',
  instance_group: 'Groups',
  instance_template: 'Templates',
  capacity_request: 'Capacity requests',
}

export const projectEventKinds: { kind: string; text: string; types: string[] }[] = Object.entries(kinds).map(
  ([kind, text]) => ({
    kind,
    text,
    types: eventTypes
      .filter((type) => type.startsWith(`${kind}.`))
      .toSorted((a, b) => eventTypeText(a).localeCompare(eventTypeText(b), 'en')),
  }),
)

export const projectEventTypes: string[] = projectEventKinds.flatMap(({ types }) => types)

/** Returns the events of a webhook as text: "Disks, VM crashed" for `disk.*` and `vm.crashed`. */
export const eventSelectorText = (selectors: string[]): string =>
  selectors.length === 0 || selectors.includes('*')
    ? 'all'
    : selectors
        .map((selector) => {
          const kind = projectEventKinds.find(({ kind }) => selector === `${kind}.*`)
          return kind?.text ?? eventTypeText(selector)
        })
        .join(', ')
