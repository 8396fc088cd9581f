import { command, type GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { printOne } from '../../output/print.ts'
import { accessKeys } from './resource.ts'

export const key: GroupSpec = {
  name: 'key',
  summary: 'access keys of the project',
  commands: [
    listCommand(accessKeys),
    command<{ name: string; role: 'read' | 'write'; expires?: number }>({
      name: 'create',
      summary: 'create an access key',
      arguments: [{ syntax: '<name>', description: 'what it is for' }],
      options: [
        {
          flags: '--role <role>',
          description: 'read or write',
          default: 'write',
          complete: ['read', 'write'],
        },
        { flags: '--expires <duration>', description: 'how long it works: 30d', parse: parseDurationMs },
      ],
      examples: [
        'slipway key create ci',
        'slipway key create dashboard --role read --expires 90d',
        'slipway key create ci -o columns=secret',
      ],
      async run(cli, { name, role, expires }) {
        const expires_at = expires === undefined ? undefined : new Date(Date.now() + expires).toISOString()
        await printOne(
          cli,
          await cli.client.accessKeyCreate({ project_id: await cli.project() }, { name, role, expires_at }),
        )
        cli.note('Keep the secret: it is shown this once.')
      },
    }),
    deleteCommand(accessKeys, async (cli, key_id) => {
      await cli.client.accessKeyDelete({ project_id: await cli.project(), key_id })
      return {}
    }),
  ],
}
