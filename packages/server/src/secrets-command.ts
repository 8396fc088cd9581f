import { readConfig, withDatabase } from './command-setup.ts'
import { ConfigError } from './config/index.ts'
import { openSecretKey, rotateSecretKey } from './setup/secrets.ts'

const usage = `Usage: slipway-server secrets rotate [--data-dir DIR] [--config FILE]

Creates a new master key in the key file (SLIPWAY_SECRET_KEY_FILE, or secret.key in the data directory) and encrypts all
secrets again with it. Servers can keep running if they read the same file. The previous key stays in the file's second
line.`

export async function runSecretsCommand(argv: string[]): Promise<void> {
  const [verb, ...flags] = argv
  if (verb === '--help' || flags.includes('--help')) return console.log(usage)
  if (verb !== 'rotate') throw new ConfigError(usage)
  const config = readConfig(flags)
  await withDatabase(config, async (database) => {
    const keys = await openSecretKey(database, config.server)
    const { keyId, count } = await rotateSecretKey(database, keys)
    console.log(`The master key is now ${keyId}. Encrypted again: ${count} secrets.`)
  })
}
