import { type ExpiryAction, expiryActions } from '@slipway/contract/states'
import { command, oneOf } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { refArgument } from '../../core/resource.ts'
import { vms } from './resource.ts'
import { updateVm } from './update.ts'

export const vmExtend = command<{ ref: string; ttl: number; onExpiry?: ExpiryAction } & WaitFlags>({
  name: 'extend',
  summary: 'set a new TTL for a VM, starting now',
  arguments: [refArgument(vms)],
  options: [
    {
      flags: '--ttl <duration>',
      description: 'time to live, counted from now, for example 4h',
      required: true,
      parse: parseDurationMs,
    },
    { flags: '--on-expiry <action>', ...oneOf(expiryActions) },
    ...waitOptions,
  ],
  examples: ['slipway vm extend train-7 --ttl 8h', 'slipway vm extend train-7 --ttl 1d --on-expiry delete'],
  run: (cli, { ref, ttl, onExpiry, ...wait }) => {
    const body = { ttl_seconds: Math.round(ttl / 1000), ...(onExpiry && { on_expiry: onExpiry }) }
    return updateVm(cli, ref, 'Extending', body, wait)
  },
})
