import { nearest } from '../domain/nearest.ts'
import { ConfigError } from './fields.ts'

const VALUE_FLAGS = ['--port', '--host', '--data-dir', '--engine', '--role', '--config'] as const
const SWITCHES = ['--no-demo', '--help', '--version'] as const

type ValueFlag = (typeof VALUE_FLAGS)[number]
type Switch = (typeof SWITCHES)[number]

export interface Flags {
  values: Partial<Record<ValueFlag, string>>
  switches: Set<Switch>
}

export const HELP = `Usage: slipway-server [flags]
       slipway-server images --help

  --port N          port to listen on; 0 picks a free one (SLIPWAY_PORT, default 8080)
  --host ADDRESS    address to listen on (SLIPWAY_HOST, default 127.0.0.1)
  --data-dir DIR    database, credentials and images (SLIPWAY_DATA_DIR, default .slipway)
  --config FILE     configuration (SLIPWAY_CONFIG, default slipway.toml if it exists)
  --engine NAME     simulated or qemu: what the demo of an empty store runs on
  --role ROLE       all, api or worker
  --no-demo         begin with an empty store and a set-up code
  --help            this text
  --version         the version

SLIPWAY_LOG_LEVEL sets the log level; DATABASE_URL names an outside PostgreSQL.
Flags win over the environment, the environment over the file, the file over defaults.
`

/** Both `--x v` and `--x=v`; the last one counts. */
export function parseFlags(argv: string[]): Flags {
  const flags: Flags = { values: {}, switches: new Set() }
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!
    const equals = argument.indexOf('=')
    const name = equals < 0 ? argument : argument.slice(0, equals)
    const inline = equals < 0 ? undefined : argument.slice(equals + 1)
    const valueFlag = VALUE_FLAGS.find((flag) => flag === name)
    const switchFlag = SWITCHES.find((flag) => flag === name)
    if (switchFlag) {
      if (inline !== undefined) throw new ConfigError(`${name} takes no value, and got "${inline}"`)
      flags.switches.add(switchFlag)
    } else if (valueFlag) {
      const next = argv[i + 1]
      const value = inline ?? (next?.startsWith('--') ? undefined : next)
      if (value === undefined || value === '') throw new ConfigError(`${name} needs a value`)
      if (inline === undefined) i++
      flags.values[valueFlag] = value
    } else if (name.startsWith('-')) {
      const known = nearest(name, [...VALUE_FLAGS, ...SWITCHES])
      throw new ConfigError(`${name} is not a flag; did you mean ${known}?`)
    } else {
      throw new ConfigError(`${JSON.stringify(argument)} is not expected here; flags begin with --`)
    }
  }
  return flags
}
