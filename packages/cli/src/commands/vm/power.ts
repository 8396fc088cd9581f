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

export const vmStart = actionCommand('START', 'start a VM that is shut off', 'Starting')
export const vmStop = actionCommand(
  'STOP',
  'shut a VM down; its GPUs go back, disks and addresses stay',
  'Stopping',
)
export const vmReset = actionCommand('RESET', 'reset a VM the hard way', 'Resetting')
