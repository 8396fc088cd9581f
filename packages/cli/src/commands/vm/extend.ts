import { type ExpiryAction, expiryActions } from '@slipway/contract/states'
import { command, oneOf } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { refArgument } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { vms } from './resource.ts'
import { updateVm } from './update.ts'

export const vmExtend = command<
  { ref: string; ttl?: number; never?: boolean; onExpiry?: ExpiryAction } & WaitFlags
>({
  name: 'extend',
  summary: 'set a new TTL for a VM, starting now, or remove it',
  arguments: [refArgument(vms)],
  options: [
    {
      flags: '--ttl <duration>',
      description: 'time to live, counted from now, for example 4h',
      parse: parseDurationMs,
    },
    { flags: '--never', description: 'remove the TTL, so that the VM does not expire' },
    { flags: '--on-expiry <action>', ...oneOf(expiryActions) },
    ...waitOptions,
  ],
  examples: [
    'slipway vm extend train-7 --ttl 8h',
    'slipway vm extend train-7 --ttl 1d --on-expiry delete',
    'slipway vm extend train-7 --never',
  ],
  run: (cli, { ref, ttl, never, onExpiry, ...wait }) => {
    if (never ? ttl !== undefined || onExpiry : ttl === undefined)
      throw new UsageError('Use either --ttl or --never. --on-expiry needs --ttl.')
    const body = { ttl_seconds: Math.round((ttl ?? 0) / 1000), ...(onExpiry && { on_expiry: onExpiry }) }
    return updateVm(cli, ref, 'Extending', body, wait)
  },
})
