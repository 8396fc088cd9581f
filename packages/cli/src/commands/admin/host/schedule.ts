import { type AnyCommand, command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { hosts } from './resource.ts'

function scheduleCommand(name: 'open' | 'close', summary: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(hosts)],
    examples: [`slipway admin host ${name} ${hosts.example}`],
    async run(cli, { ref }) {
      const host_id = await idOf(cli, hosts, ref)
      const host = await cli.operator.adminHostUpdate({ host_id }, { schedulable: name === 'open' })
      await printOne(cli, host, hosts.fields)
    },
  })
}

export const adminHostOpen = scheduleCommand('open', 'allow new VMs on a host')
export const adminHostClose = scheduleCommand('close', 'stop placing new VMs on a host')
