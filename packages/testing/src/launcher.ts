import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { query } from './database.ts'
import { homeOf, killAndWait, postmasterPid, socketDirOf } from './postgres/postmaster.ts'
import { type Program, type ProgramOptions, startProgram } from './program.ts'
import { root } from './root.ts'

/** The server as `npm start` runs it. */
export const serverProgram = join(root, 'packages/server/dist/main.js')
export const readyLine = /"msg":"ready"/

/** The content of the credentials file that the demo writes to its data directory. */
export interface Credentials {
  api_url: string
  console_url: string
  project_id: string
  organization_id: string
  email: string
  password: string
  access_key: string
  operator_key: string
  operator_email: string
  operator_password: string
}

export function credentialsOf(dataDir: string): Credentials {
  return JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8'))
}

/** Starts real programs, as users do, and removes everything that they leave behind. */
export class Launcher {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), 'slipway-programs-')))
  readonly #programs: Program[] = []
  readonly #dataDirs = new Set<string>()

  constructor() {
    // Servers that run as another user need access to this folder.
    chmodSync(this.dir, 0o755)
  }

  newDataDir(name = `data-${this.#dataDirs.size}`): string {
    return this.use(join(this.dir, name))
  }

  /** Registers a data directory, so that `clear` removes it with its PostgreSQL. */
  use(dataDir: string): string {
    this.#dataDirs.add(dataDir)
    return dataDir
  }

  /** Starts the built server. */
  start(args: string[], options: ProgramOptions = {}): Program {
    return this.run(process.execPath, [serverProgram, ...args], options)
  }

  npmStart(args: string[]): Program {
    return this.run('npm', ['start', '--', ...args], { cwd: root })
  }

  run(command: string, args: string[], options: ProgramOptions = {}): Program {
    const { HOME = '' } = process.env
    const program = startProgram(command, args, {
      cwd: this.dir,
      ...options,
      env: { HOME, ...options.env },
    })
    this.#programs.push(program)
    return program
  }

  async clear(): Promise<void> {
    for (const program of this.#programs) await program.kill()
    for (const dataDir of this.#dataDirs) await clearDataDir(dataDir)
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/** Runs a statement on the PostgreSQL of a data directory. */
export function queryDataDir<Row>(dataDir: string, text: string, values?: unknown[]): Promise<Row[]> {
  return query<Row>(databaseUrlOf(dataDir), text, values)
}

/** Returns the superuser URL of the PostgreSQL of a data directory. */
export function databaseUrlOf(dataDir: string): string {
  const password = readFileSync(join(dataDir, 'postgres-password'), 'utf8').trim()
  return `postgresql://slipway:${password}@${encodeURIComponent(socketDirOf(dataDir))}/slipway`
}

async function clearDataDir(dataDir: string): Promise<void> {
  const home = homeOf(dataDir)
  if (home) {
    const pid = postmasterPid(dataDir)
    if (pid) await killAndWait(pid, 'SIGQUIT')
    for (const dir of [home, socketDirOf(dataDir)]) rmSync(dir, { recursive: true, force: true })
  }
  rmSync(dataDir, { recursive: true, force: true })
}
