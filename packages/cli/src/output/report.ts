import { ApiError } from '@slipway/sdk'
import { CliError } from '../errors/cli-error.ts'
import { errorRecord, exitCodeOf, hintsOf } from '../errors/explain.ts'
import { colorsFor } from './colors.ts'
import { jsonText, laidOut } from './untrusted.ts'

/** Prints an error on stderr, as JSON if the command line asks for JSON, and returns the exit code. */
export function reportFailure(error: unknown, words: string[]): number {
  if (wantsJson(words)) process.stderr.write(`${jsonText(errorRecord(error), 2)}\n`)
  else process.stderr.write(`${laidOut(describe(error))}\n`)
  return exitCodeOf(error)
}

function describe(error: unknown): string {
  const colors = colorsFor(process.stderr, {}, process.env)
  const isOurs = error instanceof CliError || error instanceof ApiError
  const message = error instanceof Error ? error.message : String(error)
  const lines = [`${colors.red('slipway:')} ${message.replaceAll('\u001b', '\\u001b')}`]
  for (const hint of hintsOf(error)) lines.push(`  ${hint}`)
  if (error instanceof ApiError && error.requestId && error.status >= 500)
    lines.push(`  Request id: ${error.requestId}`)
  if (!isOurs && process.env.SLIPWAY_DEBUG && error instanceof Error) lines.push(error.stack ?? '')
  return lines.join('\n')
}

/** The words are searched as they were typed, since an error may come before they are parsed. */
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
