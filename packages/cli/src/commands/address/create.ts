import { command } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { idOf } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'
import { vms } from '../vm/resource.ts'

interface AddressCreateInput {
  name: string
  location?: string
  vm?: string
  label?: string[]
}

export const addressCreate = command<AddressCreateInput>({
  name: 'create',
  summary: 'reserve a public address',
  details: 'Reserves a free address in a location, or the current address of a VM. The VM keeps its address.',
  arguments: [{ syntax: '<name>', description: 'name of the address' }],
  options: [
    { flags: '--location <location>', description: 'location of the address', complete: 'location' },
    { flags: '--vm <vm>', description: 'name or id of the VM whose address is reserved', complete: 'vm' },
    labelOption,
  ],
  examples: [
    'slipway address create gateway --location us-east1-a',
    'slipway address create gateway --vm train-7',
  ],
  async run(cli, { name, location, vm, label }) {
    if ((location === undefined) === (vm === undefined))
      throw new UsageError('Use either --location or --vm.')
    const body = {
      name,
      ...(location && { location }),
      ...(vm && { vm_id: await idOf(cli, vms, vm) }),
      ...(label && { labels: parseLabels(label) }),
    }
    await printOne(cli, await cli.client.addressCreate({ project_id: await cli.project() }, body))
  },
})
