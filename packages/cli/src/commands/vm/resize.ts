import { vmTypeNames } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { refArgument } from '../../core/resource.ts'
import { vms } from './resource.ts'
import { updateVm } from './update.ts'

export const vmResize = command<{ ref: string; type: string } & WaitFlags>({
  name: 'resize',
  summary: 'change the type of a stopped VM, within its family',
  arguments: [refArgument(vms)],
  options: [
    { flags: '--type <type>', description: 'the new type', values: vmTypeNames, required: true },
    ...waitOptions,
  ],
  examples: ['slipway vm resize train-7 --type a100.4x'],
  run: (cli, { ref, type, ...wait }) => updateVm(cli, ref, 'Resizing', { type }, wait),
})
