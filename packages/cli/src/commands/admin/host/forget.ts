import { confirmLoss } from '../../../core/ask.ts'
import { command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { hosts } from './resource.ts'

export const adminHostForget = command<{ ref: string; yes?: boolean }>({
  name: 'forget',
  summary: 'declare that a host is down for good and everything on it is lost',
  arguments: [refArgument(hosts)],
  options: [{ flags: '-y, --yes', description: 'skip the confirmation' }],
  examples: [
    `slipway admin host forget ${hosts.example}`,
    `slipway admin host forget ${hosts.example} --yes`,
  ],
  async run(cli, { ref, yes }) {
    const host_id = await idOf(cli, hosts, ref)
    const loses = 'Its VMs will lose their OS disks, and the disks on this host will be deleted.'
    await confirmLoss(cli, `Forget ${ref}? ${loses}`, yes)
    await printOne(cli, await cli.operator.adminHostForget({ host_id }), hosts.fields)
  },
})
