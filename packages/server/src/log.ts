import { writeSync } from 'node:fs'
import { type Logger, pino } from 'pino'
import type { LogLevel } from './config/index.ts'

const standardOutput = 1
/** Lines go out together: a write for each costs more than making it. */
const bufferBytes = 16_384
const flushMs = 1_000
/** Before a reader that is behind is tried again. */
const behindMs = 10
const errorLevel = pino.levels.values.error!

/**
 * The log of a process, on its standard output. A line waits there for others, for a second at most; from errors on, and
 * at the exit of the process, however it comes about, everything is written. What ends the process unforeseen is the last
 * line.
 */
export function openLog(level: LogLevel): Logger {
  const output = new Output()
  process.on('exit', () => output.flush())
  const log = pino(
    {
      level,
      // What is logged is chosen by hand; this is for what slips through.
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
 * Standard output. What cannot be written, since whoever read it has gone or a disk is full, is dropped: a log is no reason
 * for a service to stop.
 */
class Output {
  #waiting = ''

  constructor() {
    setInterval(() => this.flush(), flushMs).unref()
  }

  write(line: string): void {
    this.#waiting += line
    if (this.#waiting.length >= bufferBytes) this.flush()
  }

  flush(): void {
    let rest = Buffer.from(this.#waiting)
    this.#waiting = ''
    while (rest.length > 0)
      try {
        rest = rest.subarray(writeSync(standardOutput, rest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
        pause(behindMs)
      }
  }
}

/** Nothing else goes on meanwhile: what is logged at the end of a process cannot wait for a turn of its own. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
