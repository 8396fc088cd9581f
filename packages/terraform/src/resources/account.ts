import type { ResourceRow } from '../engine/row.ts'
import { sameInstant, sameKey } from './equivalents.ts'

const changesConstantly = 'The value changes constantly, so every plan would show a difference.'

const needsAdmin = 'The provider’s access key must be an organization key with the role admin.'

export const accountRows: ResourceRow[] = [
  {
    name: 'ssh_key',
    noun: 'SSH key',
    description: 'An SSH public key that can be installed in new VMs of the project.',
    routes: 'sshKey',
    example: `resource "slipway_ssh_key" "example" {
  name       = "ada"
  public_key = file("id_ed25519.pub")
}`,
    equivalent: { public_key: sameKey },
  },
  {
    name: 'project',
    noun: 'project',
    description: `A project of an organization. ${needsAdmin}`,
    routes: 'project',
    example: `resource "slipway_project" "example" {
  name            = "research"
  organization_id = var.organization_id
}`,
    fixed: ['version'],
    defaults: { labels: {} },
  },
  {
    name: 'budget',
    noun: 'budget',
    description: `The monthly budget of a project. A project has one budget; deleting it removes the limit. ${needsAdmin}`,
    routes: { create: 'budgetSet', get: 'budgetGet', update: 'budgetSet' },
    example: `resource "slipway_budget" "example" {
  monthly_usd = 500
  hard_stop   = true
}`,
    omitted: { spent_usd: changesConstantly },
    defaults: { hard_stop: false },
    resetBody: { monthly_usd: null, hard_stop: false },
  },
  {
    name: 'access_key',
    noun: 'access key',
    description: `An access key of a project. The state contains its secret. ${needsAdmin}`,
    routes: 'accessKey',
    example: `resource "slipway_access_key" "example" {
  name          = "ci"
  role          = "read"
  allowed_cidrs = ["203.0.113.0/24"]
}

output "ci_key" {
  value     = slipway_access_key.example.secret
  sensitive = true
}`,
    notes: {
      expires_at:
        'When the key stops working, for example `2027-01-01T00:00:00Z`. The default is the expiry time of the provider’s key.',
    },
    omitted: { last_used_at: changesConstantly },
    sensitive: ['secret'],
    equivalent: { expires_at: sameInstant },
  },
  {
    name: 'webhook',
    noun: 'webhook',
    description: `A URL that receives events of a project. The state contains the secret for verifying its signatures. ${needsAdmin}`,
    routes: 'webhook',
    example: `resource "slipway_webhook" "example" {
  url         = "https://hooks.example.com/slipway"
  event_types = ["vm.running", "operation.*"]
}`,
    notes: {
      url: 'Events are sent to this URL by POST.',
      event_types:
        'The event types to send, for example `vm.running` or `operation.*`. If the set is empty, all events are sent.',
      state: 'A `paused` webhook does not receive events.',
    },
    omitted: {
      failing_since: 'The value changes with deliveries, so plans would show differences.',
      next_attempt_at: 'The value changes with deliveries, so plans would show differences.',
    },
    fixed: ['secret'],
    sensitive: ['secret'],
    defaults: { event_types: [], state: 'active' },
  },
]
