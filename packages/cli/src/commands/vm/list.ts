import type { Vm } from '@slipway/sdk'
import { listCommand } from '../../core/generic-commands.ts'
import { vms } from './resource.ts'

interface ListInput {
  state?: string
  type?: string
  location?: string
}

export const vmList = listCommand<Vm, ListInput>(vms, {
  options: [
    { flags: '--state <states>', description: 'running, shutoff, …; several with commas' },
    { flags: '--type <types>', description: 'VM types', complete: 'type' },
    { flags: '--location <locations>', description: 'locations', complete: 'location' },
  ],
  examples: ['slipway vm list --state running -o columns=name,public_ip'],
  list: async (cli, { state, type, location }) =>
    cli.client.collect('vmList', {
      project_id: await cli.project(),
      states: state && stateNames(state),
      types: type,
      locations: location,
    }),
})

/** Writes `running,shutoff` as the service does: `STATE_RUNNING,STATE_SHUTOFF`. */
const stateNames = (text: string): string =>
  text
    .split(',')
    .map(
      (word) =>
        `STATE_${word
          .trim()
          .replace(/^STATE_/i, '')
          .toUpperCase()}`,
    )
    .join(',')
