import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { homeOf, killAndWait, postmasterPid } from './store/embedded-harness.ts'

const run = promisify(execFile)
export const root = fileURLToPath(new URL('../../..', import.meta.url))
export const readyLine = /"msg":"ready"/
const main = join(root, 'packages/server/dist/main.js')

export interface LaunchOptions {
  env?: Record<string, string>
  uid?: number
  gid?: number
  cwd?: string
}

/** Starts the real program, as its users do, and clears away whatever it leaves. */
export class Launcher {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), 'slipway-start-')))
  readonly #programs: Program[] = []
  readonly #dataDirs: string[] = []

  constructor() {
    chmodSync(this.dir, 0o755)
  }

  async build(): Promise<void> {
    const script = `await import('./scripts/build.mjs').then(({ build }) => build())`
    await run(process.execPath, ['--input-type=module', '-e', script], { cwd: root })
  }

  newDataDir(): string {
    return this.use(join(this.dir, `data-${this.#dataDirs.length}`))
  }

  use(dataDir: string): string {
    this.#dataDirs.push(dataDir)
    return dataDir
  }

  start(args: string[], options: LaunchOptions = {}): Program {
    return this.#launch(process.execPath, [main, ...args], { cwd: this.dir, ...options })
  }

  npmStart(args: string[]): Program {
    return this.#launch('npm', ['start', '--', ...args], { cwd: root })
  }

  #launch(command: string, args: string[], { env, ...options }: LaunchOptions): Program {
    const { PATH = '', HOME = '' } = process.env
    const child = spawn(command, args, {
      ...options,
      // A group of its own, as a shell gives to what runs in the foreground.
      detached: true,
      env: { PATH, HOME, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const program = new Program(child)
    this.#programs.push(program)
    return program
  }

  async sql(dataDir: string, text: string): Promise<void> {
    const [, socketDir] = readFileSync(join(dataDir, 'postgres-socket'), 'utf8').split('\n')
    const password = readFileSync(join(dataDir, 'postgres-password'), 'utf8').trim()
    const client = new pg.Client({ host: socketDir!, user: 'slipway', password, database: 'slipway' })
    await client.connect()
    await client.query(text).finally(() => client.end())
  }

  async clear(): Promise<void> {
    for (const program of this.#programs) await program.kill()
    for (const dataDir of this.#dataDirs) {
      const pid = postmasterPid(dataDir)
      if (pid) await killAndWait(pid, 'SIGQUIT')
      const homeDir = homeOf(dataDir)
      if (homeDir) rmSync(homeDir, { recursive: true, force: true })
      rmSync(dataDir, { recursive: true, force: true })
    }
    rmSync(this.dir, { recursive: true, force: true })
  }
}

export class Program {
  readonly #child: ChildProcess
  readonly #closed: Promise<number | null>
  #output = ''
  #errors = ''
  #wake = () => {}

  constructor(child: ChildProcess) {
    this.#child = child
    this.#closed = new Promise((resolve) => child.once('close', (code) => resolve(code)))
    child.stdout!.on('data', (chunk) => {
      this.#output += chunk
      this.#wake()
    })
    child.stderr!.on('data', (chunk) => {
      this.#errors += chunk
    })
    child.once('close', () => this.#wake())
  }

  /** What it printed, once that contains what is looked for. */
  async until(expected: RegExp): Promise<string> {
    while (!expected.test(this.#output)) {
      if (this.#isOver()) throw new Error(`it ended early: ${this.#output}${this.#errors}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#output
  }

  /** The exit code. */
  end(signal: NodeJS.Signals): Promise<number | null> {
    if (!this.#isOver()) this.#child.kill(signal)
    return this.#closed
  }

  endGroup(signal: NodeJS.Signals): Promise<number | null> {
    process.kill(-this.#child.pid!, signal)
    return this.#closed
  }

  /** With whatever it has started in its group. */
  async kill(): Promise<void> {
    try {
      process.kill(-this.#child.pid!, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
    await this.#closed
  }

  async ended(): Promise<{ code: number | null; output: string; errors: string }> {
    const code = await this.#closed
    return { code, output: this.#output, errors: this.#errors }
  }

  #isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }
}

export function credentialsOf(dataDir: string): Record<string, string> {
  return JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8'))
}
