import { ApiError } from '@slipway/sdk'
import { CliError } from '../errors/cli-error.ts'
import { exitCodeOf, hintsOf } from '../errors/explain.ts'
import type { AnyCommand } from './command.ts'

/** Replaces the names of request fields in an error of the service with the options that set them. */
export function withOptionNames(spec: AnyCommand, error: unknown): unknown {
  if (!(error instanceof ApiError) || error.details.length === 0) return error
  const [first = '', ...others] = error.details.map(({ field, message }) =>
    withFullStop(`${wordsOf(spec, field)} ${message}`),
  )
  return new CliError(error.code, first, exitCodeOf(error), [...others, ...hintsOf(error)], error)
}

const withFullStop = (text: string) => (/[.?!]$/.test(text) ? text : `${text}.`)

/**
 * Returns `--ssh-key` for `/vm/ssh_public_key` if there is such an option, otherwise the last name in the
 * field.
 */
function wordsOf({ options = [] }: AnyCommand, field: string): string {
  const name =
    field
      .split('/')
      .filter((part) => part !== '' && !/^\d+$/.test(part))
      .at(-1) ?? field
  const fieldWords = name.split('_').map(singular)
  const flag = options
    .map(({ flags }) => /--[\w-]+/.exec(flags)?.[0] ?? '')
    .find((candidate) => isPartOf(candidate.slice(2).split('-').map(singular), fieldWords))
  return flag || name.replaceAll('_', ' ')
}

const singular = (word: string) => word.replace(/s$/, '')

const isPartOf = (some: string[], all: string[]) =>
  some[0] !== '' && some[0] === all[0] && some.every((word) => all.includes(word))
