import { command } from '../core/command.ts'
import { printOne } from '../output/print.ts'

export const whoami = command({
  name: 'whoami',
  summary: 'show the service and who you are to it',
  examples: ['slipway whoami', 'slipway whoami -o json'],
  async run(cli) {
    const client = cli.settings.accessKey || cli.settings.context?.session ? cli.client : cli.operator
    const root = await client.rootGet()
    await printOne(cli, root, ({ caller, version, api_version }) => [
      ['Service', `${cli.settings.apiUrl} (${version}, API ${api_version})`],
      ['Caller', `${caller.kind.replace('_', ' ')} ${caller.email || caller.id}`],
      ['Role', caller.is_operator ? 'operator' : caller.role || '-'],
      ['Project', cli.settings.project || caller.project_id || '-'],
      ['Context', cli.settings.contextName || '-'],
    ])
  },
})
