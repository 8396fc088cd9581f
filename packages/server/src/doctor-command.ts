import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ConfigError, loadConfig } from './config/index.ts'
import { examine, type IncusLocation } from './engines/incus/operate/doctor.ts'
import { findingLines } from './engines/incus/operate/finding.ts'
import { thisHost } from './engines/incus/operate/host-findings.ts'

const usage = `Usage: slipway-server doctor --engine incus [--config FILE] [--location NAME]

Looks at everything that a location of this engine needs, says what is missing and how to mend it, and changes nothing.
Run it on every host. The exit code is 1 when something is missing.`

export async function runDoctorCommand(argv: string[]): Promise<void> {
  const { values } = parseArgs({
    args: argv,
    options: {
      engine: { type: 'string' },
      config: { type: 'string' },
      location: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) return console.log(usage)
  if (values.engine !== 'incus') throw new ConfigError(usage)
  const locations = incusLocations(values.config).filter(
    ({ name }) => values.location === undefined || name === values.location,
  )
  if (locations.length === 0)
    throw new ConfigError(`no location ${values.location ?? 'with engine = "incus"'} in the configuration`)
  for (const location of locations) {
    const findings = await examine(location, thisHost)
    const missingCount = findings.filter(({ verdict }) => verdict === 'missing').length
    console.log(`${location.name}\n\n${findingLines(findings)}\n`)
    console.log(missingCount === 0 ? 'Nothing is missing.' : `Missing: ${missingCount}.`)
    if (missingCount > 0) process.exitCode = 1
  }
}

/** Those of the file; without one, that of the demo on this machine. */
export function incusLocations(configFile: string | undefined): IncusLocation[] {
  const flags = ['--engine', 'incus', ...(configFile === undefined ? [] : ['--config', configFile])]
  const { locations } = loadConfig(flags, process.env, (path) => readFileSync(path, 'utf8'))
  return locations.filter((location) => location.engine === 'incus')
}
