import { type AnyCommand, command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { hosts } from './resource.ts'

function scheduleCommand(name: 'cordon' | 'uncordon', summary: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(hosts)],
    examples: [`slipway admin host ${name} ${hosts.example}`],
    async run(cli, { ref }) {
      const host_id = await idOf(cli, hosts, ref)
      const host = await cli.operator.adminHostUpdate({ host_id }, { schedulable: name === 'uncordon' })
      await printOne(cli, host, hosts.fields)
    },
  })
}

export const adminHostUncordon = scheduleCommand('uncordon', 'allow new VMs on a host again')
export const adminHostCordon = scheduleCommand('cordon', 'stop placing new VMs on a host')
