import type { OptionSpec } from '../../core/command.ts'
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
  { flags: '--allow <cidrs>', description: 'addresses that may use the key, separated by commas' },
]

export const keyLimits = ({ expires, allow }: KeyFlags) => ({
  expires_at: expires === undefined ? undefined : new Date(Date.now() + expires).toISOString(),
  allowed_cidrs: allow?.split(',').map((block) => block.trim()),
})
