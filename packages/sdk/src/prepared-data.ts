/** Keeps the data of a new service and copies it, because creating a database takes most of a start (Node only). */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, promises as fs, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const dayMs = 24 * 60 * 60 * 1000

/**
 * Returns the directory of the prepared data. It depends on the program's files, on the configuration, and on the day,
 * because a service that was stopped for a long time issues the invoices of that time when it starts.
 */
export function preparedDirectory(command: string[], config: string): string {
  const today = new Date().toISOString().slice(0, 10)
  const hash = createHash('sha256').update(JSON.stringify([command, config, today]))
  for (const path of command) {
    const files = [path, join(dirname(path), '../dist/main.js')]
    for (const file of files.filter(existsSync)) hash.update(` ${statSync(file).mtimeMs}`)
  }
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  return join(cache, 'slipway/testing', hash.digest('hex').slice(0, 20))
}

/** Keeps the data directory of a service that has been stopped, and removes what older programs have left. */
export async function keepData(dataDir: string, prepared: string): Promise<void> {
  const parent = dirname(prepared)
  await fs.mkdir(parent, { recursive: true, mode: 0o700 })
  for (const name of await fs.readdir(parent)) {
    const { mtimeMs = Infinity } = (await fs.stat(join(parent, name)).catch(() => undefined)) ?? {}
    if (mtimeMs < Date.now() - 2 * dayMs) await fs.rm(join(parent, name), { recursive: true, force: true })
  }
  const partial = await fs.mkdtemp(`${prepared}-`)
  try {
    // If the database is outside of the data directory, a copy would share it. Then the prepared directory stays empty.
    if (existsSync(join(dataDir, 'postgres/data'))) await copy(dataDir, join(partial, 'data'))
    // Another process may have been faster; its data is as good.
    await fs.rename(partial, prepared).catch(() => {})
  } finally {
    await fs.rm(partial, { recursive: true, force: true })
  }
}

/** Copies the prepared data to a new data directory. */
export async function copyPrepared(prepared: string, dataDir: string): Promise<void> {
  if (existsSync(join(prepared, 'data'))) await copy(join(prepared, 'data'), dataDir)
}

/** Files keep their owners, because a server that runs as root runs PostgreSQL as another user. */
async function copy(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to])
}
