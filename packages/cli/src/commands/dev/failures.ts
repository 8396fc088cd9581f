import { type AnyCommand, command, type GroupSpec } from '../../core/command.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { hosts } from '../admin/host/resource.ts'
import { vms } from '../vm/resource.ts'

function hostCommand(name: 'fail' | 'recover', summary: string, done: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(hosts)],
    examples: [`slipway dev host ${name} ${hosts.example}`],
    async run(cli, { ref }) {
      await cli.levers.hosts[name](await idOf(cli, hosts, ref))
      cli.note(`${ref} ${done}.`)
    },
  })
}

export const devHost: GroupSpec = {
  name: 'host',
  summary: 'failures of hosts',
  commands: [
    hostCommand('fail', 'let a host stop reporting; it counts as down a minute later', 'stopped reporting'),
    hostCommand('recover', 'let a host report again', 'reports again'),
  ],
}

const crash = command<{ ref: string }>({
  name: 'crash',
  summary: 'crash a VM',
  arguments: [refArgument(vms)],
  examples: [`slipway dev vm crash ${vms.example}`],
  async run(cli, { ref }) {
    await cli.levers.vms.crash(await idOf(cli, vms, ref))
    cli.note(`${ref} has crashed.`)
  },
})

export const devVm: GroupSpec = { name: 'vm', summary: 'failures of VMs', commands: [crash] }
