import { parseArgs } from 'node:util'
import { readConfig } from './command-setup.ts'
import { ConfigError } from './config/index.ts'
import { findingLines } from './domain/finding.ts'
import { examine } from './engines/incus/operate/doctor.ts'
import { thisHost } from './engines/incus/operate/host-findings.ts'

const usage = `Usage: slipway-server doctor --engine incus [--config FILE] [--location NAME]

Checks everything that a location of this engine needs, shows what is missing and how to fix it, and changes nothing.
Run it on every host. The exit code is 1 if something is missing.`

const options = {
  engine: { type: 'string' },
  config: { type: 'string' },
  location: { type: 'string' },
  help: { type: 'boolean' },
} as const

export async function runDoctorCommand(argv: string[]): Promise<void> {
  const { engine, config, location: name, help } = parseArgs({ args: argv, options }).values
  if (help) return console.log(usage)
  if (engine !== 'incus') throw new ConfigError(usage)
  // Without a file, `--engine` makes this the demo's location on this machine.
  const { locations } = readConfig([
    '--engine',
    'incus',
    ...(config === undefined ? [] : ['--config', config]),
  ])
  const chosen = locations
    .filter((location) => location.engine === 'incus')
    .filter((location) => name === undefined || location.name === name)
  if (chosen.length === 0)
    throw new ConfigError(`the configuration has no location ${name ?? 'with engine = "incus"'}`)
  for (const location of chosen) {
    const findings = await examine(location, thisHost)
    const missingCount = findings.filter(({ verdict }) => verdict === 'missing').length
    console.log(`${location.name}\n\n${findingLines(findings)}\n`)
    console.log(missingCount === 0 ? 'Nothing is missing.' : `Missing: ${missingCount}.`)
    if (missingCount > 0) process.exitCode = 1
  }
}
