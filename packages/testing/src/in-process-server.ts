import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '@slipway/server/config/index.ts'
import { startServer } from '@slipway/server/server.ts'
import { seedDemo } from '@slipway/server/setup/demo.ts'
import { pino } from 'pino'
import { createDatabase, query } from './database.ts'
import type { Credentials } from './launcher.ts'
import { twoLocations } from './real-server.ts'

export interface InProcessServer extends Credentials {
  /** The folder with credentials.json. It has the name that clients look for in their working folder. */
  dataDir: string
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  close(): Promise<void>
}

/**
 * Runs the server with the demo in the test's process, on a separate database, for tests of its clients. It
 * cannot respond while the test blocks, so programs that call it must not be run with `spawnSync`.
 */
export async function startInProcessServer(
  toml = twoLocations(),
  moreFlags: string[] = [],
): Promise<InProcessServer> {
  const database = await createDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'slipway-'))
  const dataDir = join(folder, '.slipway')
  const file = join(folder, 'slipway.toml')
  writeFileSync(file, toml)
  const flags = ['--port', '0', '--data-dir', dataDir, '--config', file, ...moreFlags]
  const config = loadConfig(flags, {}, (path) => readFileSync(path, 'utf8'))
  const server = await startServer(config, database.url, pino({ level: 'silent' }))
  const credentials = await seedDemo(server.services, { api: server.url, console: server.url })
  return {
    ...credentials!,
    dataDir,
    sql: (text, values) => query(database.url, text, values),
    async close() {
      await server.close()
      await database.drop()
      rmSync(folder, { recursive: true })
    },
  }
}
