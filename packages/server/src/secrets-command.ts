import { readConfig, withDatabase } from './command-setup.ts'
import { ConfigError } from './config/index.ts'
import { openSecretKey, rotateSecretKey } from './setup/secrets.ts'

const usage = `Usage: slipway-server secrets rotate [--data-dir DIR] [--config FILE]

Creates a new master key in the key file (SLIPWAY_SECRET_KEY_FILE, or secret.key in the data directory) and re-encrypts
all secrets with it. Servers can keep running if they read the same file. The previous key stays on the second line of the
file.`

export async function runSecretsCommand(argv: string[]): Promise<void> {
  const [verb, ...flags] = argv
  if (verb === '--help' || flags.includes('--help')) return console.log(usage)
  if (verb !== 'rotate') throw new ConfigError(usage)
  const config = readConfig(flags)
  await withDatabase(config, async (database) => {
    const keys = await openSecretKey(database, config.server)
    const { keyId, count } = await rotateSecretKey(database, keys)
    console.log(`The master key is now ${keyId}. Secrets re-encrypted: ${count}.`)
  })
}
