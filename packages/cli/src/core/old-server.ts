import { ApiError } from '@slipway/sdk'
import { CliError } from '../errors/cli-error.ts'
import { exitCodeOf, hintsOf } from '../errors/explain.ts'
import { version } from '../version.ts'
import type { Cli } from './cli.ts'

const errorsOfOldServers = new Set([
  'not_found',
  'method_not_allowed',
  'unexpected_answer',
  'invalid_argument',
])

/** Adds a hint to an error if the server is older than this CLI, because it may not support the request. */
export async function explainIfOld(cli: Cli, error: unknown): Promise<unknown> {
  if (!(error instanceof ApiError) || !errorsOfOldServers.has(error.code) || error.status === 0) return error
  // Uses the operator's client, because the operator key may be the only key.
  const root = await cli.operator.rootGet({}, { timeoutMs: 3000 }).catch(() => undefined)
  if (typeof root?.version !== 'string') return error
  if (root.api_version !== 'v0.1') {
    return withHint(error, `The server uses API ${root.api_version}, but this CLI uses v0.1.`)
  }
  if (!isOlder(root.version, version)) return error
  return withHint(
    error,
    `The server runs Slipway ${root.version}, which is older than this CLI (${version}) and may not support this command.`,
  )
}

function withHint(error: ApiError, hint: string): CliError {
  return new CliError(error.code, error.message, exitCodeOf(error), [...hintsOf(error), hint], error)
}

function isOlder(left: string, right: string): boolean {
  const [a, b] = [left, right].map((text) => text.split(/[.-]/).map(Number))
  for (const index of [0, 1, 2]) {
    const difference = (a?.[index] ?? 0) - (b?.[index] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}
