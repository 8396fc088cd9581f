import { parseArgs } from 'node:util'
import { didYouMean, nearest } from '../domain/nearest.ts'
import { ConfigError } from './fields.ts'

const valueFlags = ['--port', '--host', '--data-dir', '--engine', '--role', '--config'] as const
const switchFlags = ['--no-demo', '--help', '--version'] as const

type ValueFlag = (typeof valueFlags)[number]
type Switch = (typeof switchFlags)[number]

export interface Flags {
  values: Partial<Record<ValueFlag, string>>
  switches: Set<Switch>
}

export const help = `Usage: slipway-server [flags]
       slipway-server doctor --help
       slipway-server images --help
       slipway-server incus --help
       slipway-server secrets --help

  --port N          port to listen on; 0 picks a free one (SLIPWAY_PORT, default 8080)
  --host ADDRESS    address to listen on (SLIPWAY_HOST, default 127.0.0.1)
  --data-dir DIR    database, credentials and images (SLIPWAY_DATA_DIR, default .slipway)
  --config FILE     configuration (SLIPWAY_CONFIG, default slipway.toml if it exists)
  --engine NAME     simulated, qemu or incus: what the demo of an empty store runs on
  --role ROLE       all, api or worker
  --no-demo         begin with an empty store and a set-up code
  --help            this text
  --version         the version

SLIPWAY_LOG_LEVEL sets the log level; SLIPWAY_WORKER_PORT has a worker show its health on loopback; DATABASE_URL names an outside PostgreSQL.
SLIPWAY_SECRET_KEY_FILE holds the key that encrypts secrets at rest (default: secret.key in the data directory).
Flags win over the environment, the environment over the file, the file over defaults.
`

const options = Object.fromEntries([
  ...valueFlags.map((flag) => [flag.slice(2), { type: 'string' as const }]),
  ...switchFlags.map((flag) => [flag.slice(2), { type: 'boolean' as const }]),
])

/** Both `--x v` and `--x=v`; the last one counts. */
export function parseFlags(argv: string[]): Flags {
  const flags: Flags = { values: {}, switches: new Set() }
  // Not strict: a mistake gets our own words, with the flag that was meant.
  const { tokens } = parseArgs({ args: argv, options, strict: false, allowPositionals: true, tokens: true })
  for (const token of tokens) {
    if (token.kind !== 'option')
      throw new ConfigError(`${JSON.stringify(argv[token.index])} is not expected here; flags begin with --`)
    const { rawName, value, inlineValue } = token
    const valueFlag = valueFlags.find((flag) => flag === rawName)
    const switchFlag = switchFlags.find((flag) => flag === rawName)
    if (switchFlag) {
      if (value !== undefined) throw new ConfigError(`${rawName} takes no value, and got "${value}"`)
      flags.switches.add(switchFlag)
    } else if (valueFlag) {
      if (!value || (!inlineValue && value.startsWith('--')))
        throw new ConfigError(`${rawName} needs a value`)
      flags.values[valueFlag] = value
    } else {
      // Of -config, parseArgs makes the letters c, o, n …
      const [given = rawName] = argv[token.index]!.split('=')
      const known = nearest(given, [...valueFlags, ...switchFlags])
      throw new ConfigError(`${given} is not a flag${didYouMean(known) || '; --help lists them'}`)
    }
  }
  return flags
}
