import type { RouteResponse } from '@slipway/sdk'
import type { Cli } from '../core/cli.ts'

export type Caller = RouteResponse<'rootGet'>['caller']

const rights: Record<string, string> = {
  read: 'can view the project',
  write: 'can view and change the VMs, disks, networks and firewall rules of the project',
  viewer: 'can view the projects of the organization',
  member: 'can view and change the VMs, disks, networks and firewall rules of the organization',
  admin: 'can do what a member can, and manage projects, keys, webhooks and budgets',
  owner: 'can do everything in the organization',
  operator: 'can use every `slipway admin` command',
}

/** Returns a role with a description of its rights. */
export const roleText = (role: string): string => (rights[role] ? `${role}: ${rights[role]}` : role || '-')

/** Returns the name of a caller. A key is identified by the beginning of its secret. */
export const callerText = ({ kind, email, id }: Caller, key: string): string =>
  `${kind.replace('_', ' ')} ${email || prefixOf(key) || id}`

const prefixOf = (key: string): string => /^slp_[^_]+/.exec(key)?.[0] ?? ''

/**
 * Returns a user's role in an organization, or undefined for an access key, whose role is part of the caller.
 */
export async function organizationRole(
  client: Cli['client'],
  { id }: Caller,
  organization_id: string,
): Promise<string | undefined> {
  const members = await client.collect('memberList', { organization_id }).catch(() => [])
  return members.find(({ user_id }) => user_id === id)?.role
}
