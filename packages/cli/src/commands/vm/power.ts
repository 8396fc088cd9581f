import type { VmAction } from '@slipway/sdk'
import { type AnyCommand, command } from '../../core/command.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { refArgument } from '../../core/resource.ts'
import { vms } from './resource.ts'
import { updateVm } from './update.ts'

function actionCommand(action: VmAction, summary: string, title: string): AnyCommand {
  const name = action.toLowerCase()
  return command<{ ref: string } & WaitFlags>({
    name,
    summary,
    arguments: [refArgument(vms)],
    options: waitOptions,
    examples: [`slipway vm ${name} train-7`, `slipway vm ${name} train-7 --no-wait`],
    run: (cli, { ref, ...wait }) => updateVm(cli, ref, title, { action }, wait),
  })
}

export const vmStart = actionCommand('START', 'start a stopped VM', 'Starting')
export const vmStop = actionCommand(
  'STOP',
  'stop a VM: its GPUs are released, its disks and addresses are kept',
  'Stopping',
)
export const vmReset = actionCommand('RESET', 'hard-reset a VM', 'Resetting')
export const vmReplace = actionCommand(
  'REPLACE',
  'move a VM to other GPUs; it stays the same VM, with its id, disks, addresses and host keys',
  'Replacing',
)
