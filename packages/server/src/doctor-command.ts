import { parseArgs } from 'node:util'
import { readConfig } from './command-setup.ts'
import { type Config, ConfigError } from './config/index.ts'
import { examineService } from './doctor/index.ts'
import { examine } from './engines/incus/operate/doctor.ts'
import { type Finding, findingLines } from './engines/incus/operate/finding.ts'
import { thisHost } from './engines/incus/operate/host-findings.ts'

const usage = `Usage: slipway-server doctor [--config FILE] [--data-dir DIR]
       slipway-server doctor --engine incus [--config FILE] [--location NAME]

Shows each problem and how to fix it, and changes nothing. The exit code is 1 if there is a problem.

The first form checks this installation: configuration, data directory, disk, file descriptors, clock, database, secret
key, TLS, engines, and the connections to webhooks, mail and identity providers. Run it as the user that runs the service.
The second form checks everything that a location with the incus engine needs. Run it on every host.`

const options = {
  engine: { type: 'string' },
  config: { type: 'string' },
  'data-dir': { type: 'string' },
  location: { type: 'string' },
  help: { type: 'boolean' },
} as const

export async function runDoctorCommand(argv: string[]): Promise<void> {
  const { engine, location, help, ...files } = parseArgs({ args: argv, options }).values
  if (help) return console.log(usage)
  const flags = Object.entries(files).flatMap(([name, value]) => [`--${name}`, value])
  if (engine === undefined && location === undefined) {
    // This checks a service that an operator has set up, so the locations of the demo do not apply.
    return show('', await examineService(readConfig([...flags, '--no-demo'])))
  }
  if (engine !== 'incus') throw new ConfigError(usage)
  // Without a configuration file, `--engine` selects the demo's location on this machine.
  const config = readConfig(['--engine', 'incus', ...flags])
  for (const chosen of incusLocations(config, location))
    show(`${chosen.name}\n\n`, await examine(chosen, thisHost))
}

function incusLocations({ locations }: Config, name: string | undefined) {
  const chosen = locations
    .filter((location) => location.engine === 'incus')
    .filter((location) => name === undefined || location.name === name)
  if (chosen.length === 0)
    throw new ConfigError(`the configuration has no location ${name ?? 'with engine = "incus"'}`)
  return chosen
}

function show(title: string, findings: Finding[]): void {
  const problemCount = findings.filter(({ verdict }) => verdict === 'problem').length
  console.log(`${title}${findingLines(findings)}\n`)
  console.log(problemCount === 0 ? 'No problems found.' : `Problems: ${problemCount}.`)
  if (problemCount > 0) process.exitCode = 1
}
