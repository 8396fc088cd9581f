import { command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { hosts } from './resource.ts'

export const adminHostDrain = command<{ ref: string }>({
  name: 'drain',
  summary: 'stop placing new VMs on a host and notify its tenants; running VMs continue',
  arguments: [refArgument(hosts)],
  examples: [`slipway admin host drain ${hosts.example}`],
  async run(cli, { ref }) {
    const host_id = await idOf(cli, hosts, ref)
    await printOne(cli, await cli.operator.adminHostDrain({ host_id }), hosts.fields)
  },
})
