import { type KeyKind, type Role, roles } from '@slipway/sdk'
import { command, type GroupSpec, oneOf } from '../../../core/command.ts'
import { listCommand } from '../../../core/generic-commands.ts'
import { printOne } from '../../../output/print.ts'
import { deleteKeyCommand } from '../../key/delete.ts'
import { type KeyFlags, keyLimits, keyOptions, kindOption, noteSecret } from '../../key/options.ts'
import { accessKeys } from '../../key/resource.ts'

const organizationKeys = {
  ...accessKeys,
  route: 'organizationKeyList',
  list: async (cli) =>
    cli.client.collect('organizationKeyList', { organization_id: await cli.organization() }),
} satisfies typeof accessKeys

const create = command<{ name: string; role: Role; kind: KeyKind } & KeyFlags>({
  name: 'create',
  summary: 'create a key for all projects of the organization',
  arguments: [{ syntax: '<name>', description: 'name of the key' }],
  options: [{ flags: '--role <role>', ...oneOf([...roles]), default: 'member' }, kindOption, ...keyOptions],
  examples: [
    'slipway org key create ci --role member',
    'slipway org key create audit --role viewer --allow 203.0.113.0/24',
    'slipway org key create terraform --role admin --kind signing',
  ],
  async run(cli, { name, role, kind, ...limits }) {
    const target = { organization_id: await cli.organization() }
    await printOne(
      cli,
      await cli.client.organizationKeyCreate(target, { name, role, kind, ...keyLimits(limits) }),
    )
    noteSecret(cli, kind)
  },
})

export const orgKey: GroupSpec = {
  name: 'key',
  summary: 'access keys of the organization',
  commands: [
    listCommand(organizationKeys, { group: 'org' }),
    create,
    deleteKeyCommand(
      organizationKeys,
      async (cli, target) =>
        cli.client.organizationKeyDelete({ organization_id: await cli.organization(), ...target }),
      'org',
    ),
  ],
}
