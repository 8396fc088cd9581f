import { command, oneOf } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'
import { type KeyFlags, keyLimits, keyOptions } from './options.ts'
import { keyRoleOf, keyRoles } from './roles.ts'

export const keyCreate = command<{ name: string; role: string } & KeyFlags>({
  name: 'create',
  summary: 'create an access key',
  arguments: [{ syntax: '<name>', description: 'what it is for' }],
  options: [
    { flags: '--role <role>', ...oneOf(keyRoles), values: [...keyRoles, 'read', 'write'], default: 'member' },
    ...keyOptions,
  ],
  examples: [
    'slipway key create ci',
    'slipway key create dashboard --role viewer --expires 90d',
    'slipway key create ci -o columns=secret',
  ],
  async run(cli, { name, role, ...limits }) {
    const target = { project_id: await cli.project() }
    await printOne(
      cli,
      await cli.client.accessKeyCreate(target, { name, role: keyRoleOf(role), ...keyLimits(limits) }),
    )
    cli.note('Keep the secret: it is shown this once.')
  },
})
