import { type KeyKind, keyKinds } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { type OptionSpec, oneOf } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'

export interface KeyFlags {
  expires?: number
  allow?: string
}

/** The options of every kind of access key. */
export const keyOptions: OptionSpec[] = [
  {
    flags: '--expires <duration>',
    description: 'how long the key is valid, for example 30d',
    parse: parseDurationMs,
  },
  {
    flags: '--allow <cidrs>',
    description: 'addresses or CIDR ranges that may use the key, separated by commas',
  },
]

export const keyLimits = ({ expires, allow }: KeyFlags) => ({
  expires_at: expires === undefined ? undefined : new Date(Date.now() + expires).toISOString(),
  allowed_cidrs: allow?.split(',').map((block) => block.trim()),
})

/** Keys of a project or an organization can also sign requests to the compatible API. */
export const kindOption: OptionSpec = { flags: '--kind <kind>', ...oneOf([...keyKinds]), default: 'bearer' }

export function noteSecret(cli: Cli, kind: KeyKind): void {
  cli.note('Save the secret. It is shown only once.')
  if (kind === 'signing')
    cli.note('To sign requests, use the prefix as access key id and the secret as secret key.')
}
