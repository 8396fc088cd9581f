import { isUuid } from '@slipway/contract/names'
import type { Cli } from '../core/cli.ts'
import { command } from '../core/command.ts'
import { printOne } from '../output/print.ts'
import { roleWord } from './key/roles.ts'

export const whoami = command({
  name: 'whoami',
  summary: 'show the service and who you are to it',
  examples: ['slipway whoami', 'slipway whoami -o json'],
  async run(cli) {
    const client = cli.settings.accessKey || cli.settings.context?.session ? cli.client : cli.operator
    const root = await client.rootGet()
    const project = await projectName(cli, root.caller.project_id)
    await printOne(cli, root, ({ caller, version, api_version }) => [
      ['Service', `${cli.settings.apiUrl} (${version}, API ${api_version})`],
      ['Caller', `${caller.kind.replace('_', ' ')} ${caller.email || caller.id}`],
      ['Role', caller.is_operator ? 'operator' : roleWord(caller.role) || '-'],
      ['Project', project],
      ['Context', cli.settings.contextName || '-'],
    ])
  },
})

/** The name of the project that commands are about; its id where the caller cannot read it. */
async function projectName(cli: Cli, own: string): Promise<string> {
  const project_id = cli.settings.project || own
  if (cli.format.kind !== 'table' || !isUuid(project_id)) return project_id || '-'
  const found = await cli.client.projectGet({ project_id }).catch(() => undefined)
  return found ? `${found.name} (${project_id})` : project_id
}
