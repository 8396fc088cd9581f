import { type Host, type HostState, hostStates } from '@slipway/sdk'
import { oneOf } from '../../../core/command.ts'
import { listCommand } from '../../../core/generic-commands.ts'
import { hosts } from './resource.ts'

export const adminHostList = listCommand<Host, { location?: string; state?: HostState }>(hosts, {
  group: 'admin',
  options: [
    { flags: '--location <location>', description: 'only hosts in this location', complete: 'location' },
    { flags: '--state <state>', ...oneOf(hostStates) },
  ],
  list: (cli, filter) => cli.operator.collect('adminHostList', filter),
})
