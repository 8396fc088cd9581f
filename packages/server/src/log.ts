import { constants, fstatSync, openSync, writeSync } from 'node:fs'
import { type Logger, pino } from 'pino'
import type { LogLevel } from './config/index.ts'

const standardOutput = 1
/** Lines are written together, because a system call per line costs more than formatting it. */
const batchBytes = 16_384
const flushMs = 1_000
/** The pause before a failed write is tried again. */
const retryMs = 20
/** The maximum total size of lines that a stalled reader has not read yet. Beyond this, lines are dropped. */
const maxUnwrittenBytes = 1_048_576
/** How long an exiting process waits for the reader of its output. */
const maxExitMs = 1_000
const errorLevel = pino.levels.values.error!

/** Lines that were dropped since the start, for /metrics. */
export const logCounts = { dropped: 0 }

/**
 * Opens the log of this process, on its standard output. A line waits at most a second to be written together
 * with others; errors are written immediately. The exception that ends the process is the last line.
 */
export function openLog(level: LogLevel): Logger {
  const output = new LogOutput((lines) =>
    log.warn({ lines }, 'log lines were dropped because standard output did not accept them'),
  )
  process.on('exit', () => output.finish())
  const log = pino(
    {
      level,
      // Secrets are never logged on purpose. This removes those that are part of a logged object.
      redact: [
        'req.headers.authorization',
        'headers.authorization',
        '*.password',
        '*.secret',
        '*.access_key',
      ],
      hooks: {
        logMethod(args, method, lineLevel) {
          method.apply(this, args)
          if (lineLevel >= errorLevel) output.flush()
        },
      },
    },
    output,
  )
  process.on('uncaughtExceptionMonitor', (err) => log.fatal({ err }, 'crashed'))
  return log
}

/**
 * Writes to standard output without ever waiting for its reader: a full or closed pipe, or a full disk, must
 * not stop the service. Lines that could not be written are kept and retried. Once too many lines are kept,
 * new lines are dropped until all kept lines are written. Then `reportDropped` is called with the number of
 * dropped lines.
 */
class LogOutput {
  readonly #fd = openWithoutBlocking()
  readonly #reportDropped: (lines: number) => void
  #waiting = ''
  #writing: Buffer = Buffer.alloc(0)
  #dropped = 0
  #retry: NodeJS.Timeout | undefined

  constructor(reportDropped: (lines: number) => void) {
    this.#reportDropped = reportDropped
    setInterval(() => this.flush(), flushMs).unref()
  }

  write(line: string): void {
    if (this.#dropped > 0 || this.#writing.length + this.#waiting.length > maxUnwrittenBytes) {
      this.#dropped++
      logCounts.dropped++
      return
    }
    this.#waiting += line
    if (this.#waiting.length >= batchBytes && !this.#retry) this.flush()
  }

  /** Writes as much as standard output accepts. */
  flush(): void {
    const error = this.#tryWrite()
    if (error) this.#retry ??= setTimeout(() => this.#flushAgain(), retryMs).unref()
    else if (this.#dropped > 0) {
      const lines = this.#dropped
      this.#dropped = 0
      this.#reportDropped(lines)
    }
  }

  #flushAgain(): void {
    this.#retry = undefined
    this.flush()
  }

  /** Writes everything before the process exits. A slow reader gets some time to catch up. */
  finish(): void {
    const until = Date.now() + maxExitMs
    while (this.#tryWrite() === 'EAGAIN' && Date.now() < until) pause(retryMs)
  }

  /** Returns the error code if something is left to be written. */
  #tryWrite(): string | undefined {
    try {
      while (this.#writing.length > 0 || this.#waiting !== '') {
        if (this.#writing.length === 0) {
          this.#writing = Buffer.from(this.#waiting)
          this.#waiting = ''
        }
        this.#writing = this.#writing.subarray(writeSync(this.#fd, this.#writing))
      }
      return undefined
    } catch (error) {
      return (error as NodeJS.ErrnoException).code
    }
  }
}

/**
 * Returns a descriptor of standard output that returns EAGAIN instead of blocking. A pipe or terminal is
 * opened again, because another process that shares the descriptor could change its mode. A file never
 * blocks; its descriptor is not replaced, because all its writers must share one position. A socket,
 * or a pipe that belongs to another user, cannot be opened again; Node makes it non-blocking when
 * process.stdout is first used.
 */
function openWithoutBlocking(): number {
  process.stdout.on('error', () => {})
  try {
    if (fstatSync(standardOutput).isFile()) return standardOutput
    return openSync('/dev/stdout', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    return standardOutput
  }
}

/** Blocks the thread, because the event loop no longer runs in an exiting process. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
