import { type AccessKey, type Member, roles } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { type OptionSpec, oneOf } from '../../core/command.ts'
import { ageColumn, type Resource } from '../../core/resource.ts'

export const members: Resource<Member> = {
  noun: 'member',
  title: 'member',
  example: 'ada@example.com',
  otherExample: 'grace@example.com',
  reference: 'e-mail address or user id of the member',
  columns: [
    { name: 'email', value: (member) => member.email },
    { name: 'role', value: (member) => member.role },
    { name: 'state', value: (member) => member.state, isState: true },
    ageColumn,
    { name: 'user_id', value: (member) => member.user_id, isExtra: true },
  ],
  route: 'memberList',
  list: async (cli) => cli.client.collect('memberList', { organization_id: await cli.organization() }),
  named: (member) => ({ id: member.user_id, name: member.email }),
}

/** Prints the keys that stay valid after a member was removed or got another role. */
export function printRemainingKeys(cli: Cli, keys: AccessKey[]): void {
  const names = keys.map(({ name, prefix }) => `${name} (${prefix})`)
  if (names.length === 0) return
  cli.say(`Project keys created by this member stay valid: ${names.join(', ')}.`)
}

export const revokeKeysOption: OptionSpec = {
  flags: '--revoke-keys',
  description: 'also revoke the project keys that the member created',
}

export const roleOption: OptionSpec = { flags: '--role <role>', ...oneOf(roles) }
