import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { freePort } from '@slipway/testing/port.ts'
import { type Account, chooseAccount, give, spawnIdentity } from '../../../src/postgres/embedded/account.ts'

/** The programs of Debian's package postgresql, newest version first; undefined if it is not installed. */
export const debianPostgres: string | undefined = existsSync('/usr/lib/postgresql')
  ? readdirSync('/usr/lib/postgresql')
      .toSorted((a, b) => Number(b) - Number(a))
      .map((version) => `/usr/lib/postgresql/${version}/bin`)
      .find((bin) => existsSync(join(bin, 'pg_basebackup')))
  : undefined

/** A PostgreSQL from Debian's package, as an operator runs it outside of Slipway. */
export class DebianServer {
  readonly #dir: string
  readonly #account: Account
  readonly port: number

  private constructor(dir: string, account: Account, port: number) {
    this.#dir = dir
    this.#account = account
    this.port = port
  }

  /** Creates a primary with the database `slipway`. `settings` are lines of postgresql.conf. */
  static async create(dir: string, settings: string[] = []): Promise<DebianServer> {
    const server = await DebianServer.#prepare(dir)
    server.#run('initdb', ['-D', server.dataDir, '-A', 'trust', '-U', 'slipway', '--no-sync'])
    appendFileSync(join(server.dataDir, 'postgresql.conf'), `${settings.join('\n')}\n`)
    await server.start()
    await query(server.urlOf('postgres'), 'CREATE DATABASE slipway')
    return server
  }

  /** Creates a standby of another server. */
  static async createStandby(dir: string, primary: DebianServer): Promise<DebianServer> {
    const server = await DebianServer.copyOf(dir, primary, ['-R'])
    await server.start()
    return server
  }

  /** Copies another server with a base backup. The copy is not started. */
  static async copyOf(dir: string, primary: DebianServer, flags: string[] = []): Promise<DebianServer> {
    const server = await DebianServer.#prepare(dir)
    const from = ['-h', '127.0.0.1', '-p', String(primary.port), '-U', 'slipway']
    server.#run('pg_basebackup', [...from, '-D', server.dataDir, '-X', 'stream', '-c', 'fast', ...flags])
    return server
  }

  static async #prepare(dir: string): Promise<DebianServer> {
    const account = chooseAccount(undefined)
    mkdirSync(dir)
    give(dir, account)
    return new DebianServer(dir, account, await freePort())
  }

  get dataDir(): string {
    return join(this.#dir, 'data')
  }

  urlOf(database = 'slipway'): string {
    return `postgresql://slipway@127.0.0.1:${this.port}/${database}`
  }

  /** Starts the server with its own port and without a socket; waits until it accepts connections. */
  async start(): Promise<void> {
    const settings = [
      `port=${this.port}`,
      'unix_socket_directories=',
      'listen_addresses=127.0.0.1',
      'fsync=off',
    ]
    const flags = settings.flatMap((setting) => ['-c', setting])
    spawn(join(debianPostgres!, 'postgres'), ['-D', this.dataDir, ...flags], {
      ...spawnIdentity(this.#account),
      cwd: '/',
      stdio: 'ignore',
      detached: true,
    }).unref()
    await eventually(() =>
      query(this.urlOf('postgres'), 'SELECT 1').then(
        () => true,
        () => false,
      ),
    )
  }

  /** Makes a standby the primary. */
  promote(): void {
    this.#run('pg_ctl', ['promote', '-D', this.dataDir])
  }

  /** Kills the server as a crash does. Each session ends when its process notices this. */
  kill(): void {
    const pidFile = join(this.dataDir, 'postmaster.pid')
    if (!existsSync(pidFile)) return
    const [pid] = readFileSync(pidFile, 'utf8').split('\n')
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }

  #run(program: string, args: string[]): void {
    execFileSync(join(debianPostgres!, program), args, {
      ...spawnIdentity(this.#account),
      cwd: '/',
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    })
  }
}
