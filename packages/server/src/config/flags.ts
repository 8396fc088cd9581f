import { parseArgs } from 'node:util'
import { didYouMean, nearest } from '../domain/nearest.ts'
import { ConfigError } from './fields.ts'

const valueFlags = ['--port', '--host', '--data-dir', '--engine', '--role', '--config'] as const
const switchFlags = ['--dev', '--no-demo', '--help', '--version'] as const

type ValueFlag = (typeof valueFlags)[number]
type Switch = (typeof switchFlags)[number]

export interface Flags {
  values: Partial<Record<ValueFlag, string>>
  switches: Set<Switch>
}

export const help = `Usage: slipway-server [flags]
       slipway-server backup --help
       slipway-server restore --help
       slipway-server doctor --help
       slipway-server images --help
       slipway-server incus --help
       slipway-server secrets --help

  --port N          port to listen on; 0 picks a free port (SLIPWAY_PORT, default 8080)
  --host ADDRESS    address to listen on (SLIPWAY_HOST, default 127.0.0.1)
  --data-dir DIR    directory for database, credentials and images (SLIPWAY_DATA_DIR, default .slipway)
  --config FILE     configuration file (SLIPWAY_CONFIG, default slipway.toml if it exists)
  --engine NAME     engine of the demo in an empty database: simulated, qemu or incus
  --role ROLE       role of this process: all, api or worker
  --dev             run a local service and let clients control clock, faults and capacity (/_dev)
  --no-demo         start with an empty database and a setup code
  --help            show this help
  --version         show the version

SLIPWAY_LOG_LEVEL sets the log level. SLIPWAY_WORKER_PORT is a worker's loopback port for health checks. DATABASE_URL is the URL of an external PostgreSQL database.
SLIPWAY_SECRET_KEY_FILE is the file with the key that encrypts secrets at rest (default: secret.key in the data directory).
Flags override the environment, the environment overrides the file, and the file overrides defaults.
`

const options = Object.fromEntries([
  ...valueFlags.map((flag) => [flag.slice(2), { type: 'string' as const }]),
  ...switchFlags.map((flag) => [flag.slice(2), { type: 'boolean' as const }]),
])

/** Accepts `--x v` and `--x=v`. If a flag is repeated, the last value is used. */
export function parseFlags(argv: string[]): Flags {
  const flags: Flags = { values: {}, switches: new Set() }
  // Parsing is not strict, so that this function can suggest the right flag after a mistake.
  const { tokens } = parseArgs({ args: argv, options, strict: false, allowPositionals: true, tokens: true })
  for (const token of tokens) {
    if (token.kind !== 'option')
      throw new ConfigError(`unexpected argument ${JSON.stringify(argv[token.index])}; flags begin with --`)
    const { rawName, value, inlineValue } = token
    const valueFlag = valueFlags.find((flag) => flag === rawName)
    const switchFlag = switchFlags.find((flag) => flag === rawName)
    if (switchFlag) {
      if (value !== undefined) throw new ConfigError(`${rawName} takes no value, but has "${value}"`)
      flags.switches.add(switchFlag)
    } else if (valueFlag) {
      if (!value || (!inlineValue && value.startsWith('--')))
        throw new ConfigError(`${rawName} requires a value`)
      flags.values[valueFlag] = value
    } else {
      // parseArgs splits -config into the letters c, o, n and so on.
      const [given = rawName] = argv[token.index]!.split('=')
      const known = nearest(given, [...valueFlags, ...switchFlags])
      throw new ConfigError(`unknown flag ${given}${didYouMean(known) || '; --help lists the flags'}`)
    }
  }
  return flags
}
