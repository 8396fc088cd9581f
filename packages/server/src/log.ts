import { type Logger, pino } from 'pino'
import type { LogLevel } from './config/index.ts'

/** Lines go out together: a write for each costs more than making it. */
const bufferBytes = 4096
const flushMs = 1_000
const errorLevel = pino.levels.values.error!

/**
 * The log of a process, on its standard output. A line waits there for others, for a second at most; from errors on, and
 * at the exit of the process, however it comes about, everything is written. What ends the process unforeseen is the last
 * line.
 */
export function openLog(level: LogLevel): Logger {
  const output = pino.destination({ dest: 1, sync: true, minLength: bufferBytes, periodicFlush: flushMs })
  process.on('exit', () => output.flushSync())
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
          if (lineLevel >= errorLevel) output.flushSync()
        },
      },
    },
    output,
  )
  process.on('uncaughtExceptionMonitor', (err) => log.fatal({ err }, 'crashed'))
  return log
}
