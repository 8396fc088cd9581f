import type { KeyKind } from '@slipway/sdk'
import { command, oneOf } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'
import { type KeyFlags, keyLimits, keyOptions, kindOption, noteSecret } from './options.ts'

export const keyCreate = command<{ name: string; role: 'read' | 'write'; kind: KeyKind } & KeyFlags>({
  name: 'create',
  summary: 'create an access key',
  arguments: [{ syntax: '<name>', description: 'name of the key' }],
  options: [
    { flags: '--role <role>', ...oneOf(['read', 'write']), default: 'write' },
    kindOption,
    ...keyOptions,
  ],
  examples: [
    'slipway key create ci',
    'slipway key create dashboard --role read --expires 90d',
    'slipway key create ci -o columns=secret',
    'slipway key create dstack --kind signing',
  ],
  async run(cli, { name, role, kind, ...limits }) {
    const target = { project_id: await cli.project() }
    await printOne(cli, await cli.client.accessKeyCreate(target, { name, role, kind, ...keyLimits(limits) }))
    noteSecret(cli, kind)
  },
})
