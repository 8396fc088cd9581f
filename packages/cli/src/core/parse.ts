import { UsageError } from '../errors/cli-error.ts'
import { knownWord } from './closed-set.ts'
import type { OptionSpec } from './command.ts'

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Parses `90s`, `15m`, `4h`, `2d`, or a combination such as `1h30m`. */
export function parseDurationMs(text: string): number {
  const parts = Array.from(text.matchAll(/(\d+)(s|m|h|d)/g))
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== text) {
    throw new UsageError(`${text} is not a duration. Expected, for example, 90s, 15m, 4h or 2d.`)
  }
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * unitMs[unit as keyof typeof unitMs], 0)
}

/** Parses a time, or a date, which means midnight UTC. */
export function parseTime(text: string): string {
  const time = new Date(text)
  if (Number.isNaN(time.getTime()))
    throw new UsageError(`${text} is not a time. Expected, for example, 2027-01-01 or 2027-01-01T12:00:00Z.`)
  return time.toISOString()
}

export function parseNumber(text: string): number {
  const number = Number(text)
  if (text.trim() === '' || !Number.isFinite(number)) throw new UsageError(`${text} is not a number.`)
  return number
}

export const parseList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')

/** Returns the function that converts the text of an option to the value that its command needs. */
export function valueParser({
  flags,
  values,
  synonyms = {},
  isList,
  parse,
}: OptionSpec): (text: string) => unknown {
  const flag = /--?[\w-]+(?=[ [<]*[[<])/.exec(flags)?.[0] ?? flags
  const one = (text: string) => {
    const word = values ? knownWord(flag, synonyms[text.toLowerCase()] ?? text, values) : text
    return parse ? parse(word) : word
  }
  return isList ? (text) => parseList(text).map(one) : one
}

/** Parses a pair such as `a100.1x=1.45`. */
export function parsePair(text: string): [name: string, value: number] {
  const [name = '', value = ''] = text.split('=')
  if (!name || !value) throw new UsageError(`${text} has an invalid format. Expected NAME=NUMBER.`)
  return [name, parseNumber(value)]
}
