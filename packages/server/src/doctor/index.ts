import type { Config } from '../config/index.ts'
import { type Finding, ok } from '../engines/incus/operate/finding.ts'
import { certificateFindings } from './certificates.ts'
import { databaseFindings } from './database.ts'
import { egressFindings } from './egress.ts'
import { engineFindings } from './engines.ts'
import { machineFindings } from './machine.ts'
import { secretKeyFinding } from './secret-key.ts'

/** Checks everything that a process of the service needs, on this machine and elsewhere. Changes nothing. */
export async function examineService(config: Config): Promise<Finding[]> {
  const { findings, facts } = await databaseFindings(config)
  return [
    ok(
      'configuration',
      config.configFile === '' ? 'no file: defaults apply' : `${config.configFile} is valid`,
    ),
    ...(await machineFindings(config, facts)),
    ...findings,
    secretKeyFinding(config.server, facts?.secretKeyId ?? null),
    ...(await certificateFindings(config.server)),
    ...(await engineFindings(config, facts)),
    ...(await egressFindings(config, facts)),
  ]
}
