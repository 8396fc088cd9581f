import { readFileSync } from 'node:fs'
import { ConfigError, loadConfig } from './config/index.ts'
import { Database } from './postgres/database.ts'
import { openEmbedded } from './postgres/embedded/index.ts'
import { migrate } from './postgres/migrate.ts'
import { loadSecretKey } from './setup/secret-key-file.ts'
import { prepareSecrets, rotateSecretKey } from './setup/secrets.ts'

const usage = `Usage: slipway-server secrets rotate [--data-dir DIR] [--config FILE]

Makes a new master key in the key file (SLIPWAY_SECRET_KEY_FILE, else secret.key in the data directory), and encrypts
everything anew under it. Servers may run meanwhile, if they read the same file. The key before stays in the file's
second line.`

/** Changes the master key of a service, whether it runs or not. */
export async function runSecretsCommand(argv: string[]): Promise<void> {
  const [verb, ...flags] = argv
  if (verb === '--help' || flags.includes('--help')) return console.log(usage)
  if (verb !== 'rotate') throw new ConfigError(usage)
  const config = loadConfig(flags, process.env, (path) => readFileSync(path, 'utf8'))
  const { dataDir } = config.server
  const embedded = config.database.url ? null : await openEmbedded({ dataDir, log: () => {} })
  const url = embedded?.url ?? config.database.url
  await migrate(url)
  const database = new Database({ url, poolSize: 2 })
  try {
    const keys = await loadSecretKey(config.server)
    await prepareSecrets(database, keys)
    const { keyId, count } = await rotateSecretKey(database, keys)
    console.log(`The secret key is ${keyId} now; ${count} secrets were encrypted anew.`)
  } finally {
    await database.close()
    await embedded?.stop()
  }
}
