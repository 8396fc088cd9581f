import { type Vm, vmStates, vmTypeNames } from '@slipway/sdk'
import { listCommand } from '../../core/generic-commands.ts'
import { selectorOption } from '../../core/labels.ts'
import { stateWord } from '../../output/state.ts'
import { vms } from './resource.ts'

interface ListInput {
  state?: string[]
  type?: string[]
  location?: string
  selector?: string
}

export const vmList = listCommand<Vm, ListInput>(vms, {
  options: [
    {
      flags: '--state <states>',
      description: 'only VMs in these states, separated by commas: running, stopped, …',
      values: vmStates.map(stateWord),
      synonyms: { shutoff: 'stopped' },
      isList: true,
    },
    {
      flags: '--type <types>',
      description: 'only VMs of these types, separated by commas',
      values: vmTypeNames,
      isList: true,
    },
    {
      flags: '--location <locations>',
      description: 'only VMs in these locations, separated by commas',
      complete: 'location',
    },
    selectorOption,
  ],
  examples: [
    'slipway vm list --state running -o columns=name,public_ip',
    "slipway vm list -l 'team=ml,stage!=test'",
  ],
  list: async (cli, { state, type, location, selector }) =>
    cli.client.collect('vmList', {
      project_id: await cli.project(),
      states: state && vmStates.filter((each) => state.includes(stateWord(each))).join(','),
      types: type?.join(','),
      locations: location,
      label_selector: selector,
    }),
})
