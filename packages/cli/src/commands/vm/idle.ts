import { command, oneOf } from '../../core/command.ts'
import { parseDurationMs, parseNumber } from '../../core/parse.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { refArgument } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { vms } from './resource.ts'
import { updateVm } from './update.ts'

interface IdleInput extends WaitFlags {
  ref: string
  below?: number
  for?: number
  action?: 'stop' | 'notify'
  ignoreSsh?: boolean
  off?: boolean
}

export const vmIdle = command<IdleInput>({
  name: 'idle',
  summary: 'stop a VM, or send an event, when all of its GPUs are idle',
  details:
    'The image must have the tag `slipway-guest`. A VM is idle if, for the time in --for, every sample showed every GPU below the limit and no open SSH session. Missing samples never count as idle. The event `vm.idle_stopping` is sent 10 minutes before the stop.',
  arguments: [refArgument(vms)],
  options: [
    { flags: '--below <percent>', description: 'GPU utilization limit, from 1 to 50', parse: parseNumber },
    {
      flags: '--for <duration>',
      description: 'how long the GPUs must be idle, from 10m to 24h',
      parse: parseDurationMs,
    },
    { flags: '--action <action>', ...oneOf(['stop', 'notify']) },
    { flags: '--ignore-ssh', description: 'also count a VM with an open SSH session as idle' },
    { flags: '--off', description: 'remove the policy' },
    ...waitOptions,
  ],
  examples: ['slipway vm idle train-7 --below 5 --for 1h', 'slipway vm idle train-7 --off'],
  run(cli, { ref, below, for: window, action = 'stop', ignoreSsh, off, ...wait }) {
    const isComplete = below !== undefined && window !== undefined
    if (off ? below !== undefined || window !== undefined : !isComplete)
      throw new UsageError('Use either --below and --for, or --off.')
    const idle_policy = off
      ? null
      : {
          min_gpu_utilization: below!,
          window_seconds: Math.round(window! / 1000),
          action,
          ...(ignoreSsh && { ignore_ssh: true }),
        }
    return updateVm(cli, ref, 'Changing the idle policy of', { idle_policy }, wait)
  },
})
