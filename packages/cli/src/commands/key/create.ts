import { command, oneOf } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { printOne } from '../../output/print.ts'

export const keyCreate = command<{ name: string; role: 'read' | 'write'; expires?: number }>({
  name: 'create',
  summary: 'create an access key',
  arguments: [{ syntax: '<name>', description: 'what it is for' }],
  options: [
    { flags: '--role <role>', ...oneOf(['read', 'write']), default: 'write' },
    { flags: '--expires <duration>', description: 'how long it works: 30d', parse: parseDurationMs },
  ],
  examples: [
    'slipway key create ci',
    'slipway key create dashboard --role read --expires 90d',
    'slipway key create ci -o columns=secret',
  ],
  async run(cli, { name, role, expires }) {
    const expires_at = expires === undefined ? undefined : new Date(Date.now() + expires).toISOString()
    const target = { project_id: await cli.project() }
    await printOne(cli, await cli.client.accessKeyCreate(target, { name, role, expires_at }))
    cli.note('Keep the secret: it is shown this once.')
  },
})
