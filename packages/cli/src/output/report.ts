import { ApiError } from '@slipway/sdk'
import { CliError } from '../errors/cli-error.ts'
import { errorRecord, exitCodeOf, hintsOf } from '../errors/explain.ts'
import type { Io } from '../io.ts'
import { colorsFor, type Palette } from './colors.ts'
import { jsonText, safeText } from './untrusted.ts'

/** Prints an error on stderr, as JSON if JSON output was requested, and returns the exit code. */
export function reportFailure({ stderr, env }: Io, error: unknown, words: string[]): number {
  const text = wantsJson(words)
    ? jsonText(errorRecord(error), 2)
    : safeText(describe(error, colorsFor(stderr, {}, env), Boolean(env.SLIPWAY_DEBUG)))
  stderr.write(`${text}\n`)
  return exitCodeOf(error)
}

function describe(error: unknown, colors: Palette, withStack: boolean): string {
  const isOurs = error instanceof CliError || error instanceof ApiError
  const message = error instanceof Error ? error.message : String(error)
  const lines = [`${colors.red('slipway:')} ${message.replaceAll('\u001b', '\\u001b')}`]
  for (const hint of hintsOf(error)) lines.push(`  ${hint}`)
  if (error instanceof ApiError && error.requestId && error.status >= 500)
    lines.push(`  Request id: ${error.requestId}`)
  if (!isOurs && withStack && error instanceof Error) lines.push(error.stack ?? '')
  return lines.join('\n')
}

/** Checks the raw arguments, because the error may have occurred before they were parsed. */
function wantsJson(words: string[]): boolean {
  const end = words.indexOf('--')
  const own = end < 0 ? words : words.slice(0, end)
  return own.some(
    (word, index) =>
      word === '-ojson' ||
      word === '--output=json' ||
      (/^(-o|--output)$/.test(word) && own[index + 1] === 'json'),
  )
}
