import { readFileSync } from 'node:fs'
import { type Config, loadConfig } from './config/index.ts'
import { Database } from './postgres/database.ts'
import { openEmbedded } from './postgres/embedded/index.ts'
import { migrate } from './postgres/migrate.ts'
import { DatabaseServers } from './postgres/servers.ts'

export const readConfig = (flags: string[]): Config =>
  loadConfig(flags, process.env, (path) => readFileSync(path, 'utf8'))

/** Opens the database of a deployment for an operator's command, whether or not its servers are running. */
export async function withDatabase(
  config: Config,
  work: (database: Database) => Promise<void>,
): Promise<void> {
  const { dataDir } = config.server
  const { urls } = config.database
  const embedded = urls.length > 0 ? null : await openEmbedded({ dataDir, log: () => {} })
  const url = new DatabaseServers(embedded?.url ?? urls)
  await migrate(url)
  const database = new Database({ url, poolSize: 2 })
  try {
    await work(database)
  } finally {
    await database.close()
    await embedded?.stop()
  }
}
