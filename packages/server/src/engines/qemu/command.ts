import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { EngineError } from '../engine.ts'

export interface CommandOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
  /** The command that starts the program, for example in a namespace. Error messages name the program. */
  launcher?: string[]
  /** Written to the program's standard input. */
  input?: string
  signal?: AbortSignal | undefined
  timeoutMs?: number
  /**
   * Runs the program in its own process group. To stop the program, the whole group gets SIGTERM, so that the
   * program can clean up. This function then waits until the program has exited.
   */
  hasOwnGroup?: boolean
  /** The error message is for operators: it has more lines and full paths. */
  showsPaths?: boolean
}

/** Runs a program and returns its standard output. If it fails, the error contains its standard error. */
export async function run(program: string, args: string[], options: CommandOptions = {}): Promise<string> {
  const limit = AbortSignal.timeout(options.timeoutMs ?? 60_000)
  const stop = options.signal ? AbortSignal.any([options.signal, limit]) : limit
  const [file, ...words] = [...(options.launcher ?? []), program, ...args]
  const child = spawn(file!, words, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env, LC_ALL: 'C', PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    ...(options.hasOwnGroup ? { detached: true } : { signal: stop, killSignal: 'SIGKILL' }),
  })
  if (options.hasOwnGroup) endGroupOnAbort(child, stop)
  // A program may exit without reading its input.
  child.stdin.on('error', () => {}).end(options.input)
  const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
  const [[code], stdout, stderr] = await ended.catch((error) => {
    const reason = error.code === 'ENOENT' ? 'is not installed' : `did not finish: ${error.message}`
    throw new EngineError('unavailable', `${program} ${reason}`, { cause: error })
  })
  if (code === 0) return stdout
  if (options.hasOwnGroup && stop.aborted)
    throw new EngineError('unavailable', `${program} did not finish: ${(stop.reason as Error).message}`)
  if (options.showsPaths)
    throw new EngineError('unavailable', `${program} failed:\n${lastLines(stderr || stdout, 20)}`)
  throw new EngineError('unavailable', `${program} ${args[0]} failed: ${redactedTail(stderr || stdout)}`)
}

function endGroupOnAbort(child: ChildProcess, stop: AbortSignal): void {
  const end = () => {
    try {
      process.kill(-child.pid!, 'SIGTERM')
    } catch {
      // The program could not be started, or has ended.
    }
  }
  if (stop.aborted) end()
  stop.addEventListener('abort', end)
  child.once('exit', () => stop.removeEventListener('abort', end))
}

/** The last lines of a program's output. Tenants may see them, so directories are removed from paths. */
export function redactedTail(output: string): string {
  return lastLines(output).replace(/(?<![\w.])(?:\/[^\s/:'",;()]+)+\/([^\s/:'",;()]*)/g, '$1')
}

export function lastLines(text: string, count = 5): string {
  return text.trim().split('\n').slice(-count).join('\n')
}
