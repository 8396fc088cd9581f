/**
 * Stores the data of a new service, so that later services can start with a copy of it, because creating a database
 * takes most of the startup time (Node only).
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, promises as fs, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const dayMs = 24 * 60 * 60 * 1000

/**
 * Returns the directory of the prepared data. Its name depends on the program's files, the configuration and the
 * date. Data of an earlier day is not used, because the service would first do the billing for the days since then.
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

/** Stores a copy of a stopped service's data, and removes prepared data that is older than two days. */
export async function keepData(dataDir: string, prepared: string): Promise<void> {
  const parent = dirname(prepared)
  await fs.mkdir(parent, { recursive: true, mode: 0o700 })
  for (const name of await fs.readdir(parent)) {
    const { mtimeMs = Infinity } = (await fs.stat(join(parent, name)).catch(() => undefined)) ?? {}
    if (mtimeMs < Date.now() - 2 * dayMs) await fs.rm(join(parent, name), { recursive: true, force: true })
  }
  const partial = await fs.mkdtemp(`${prepared}-`)
  try {
    // If the database is outside the data directory, copies would share it, so the prepared directory stays empty.
    if (existsSync(join(dataDir, 'postgres/data'))) await copy(dataDir, join(partial, 'data'))
    // Fails if another process has already stored its copy, which is equally usable.
    await fs.rename(partial, prepared).catch(() => {})
  } finally {
    await fs.rm(partial, { recursive: true, force: true })
  }
}

/** Copies the prepared data to a new data directory. */
export async function copyPrepared(prepared: string, dataDir: string): Promise<void> {
  if (existsSync(join(prepared, 'data'))) await copy(join(prepared, 'data'), dataDir)
}

/** Copies a directory. Files keep their owners: a server that runs as root runs PostgreSQL as another user. */
async function copy(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to])
}
