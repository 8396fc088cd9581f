import { isResourceName, resourceNameHint } from '@slipway/contract/names'

const qualities = [
  'amber',
  'brisk',
  'calm',
  'deep',
  'eager',
  'fleet',
  'grey',
  'hardy',
  'keen',
  'lucid',
  'mild',
  'swift',
]
const things = [
  'anchor',
  'bow',
  'cutter',
  'dock',
  'ferry',
  'gull',
  'harbour',
  'keel',
  'mast',
  'pilot',
  'reef',
  'tide',
]

const pick = (words: string[]) => words[Math.floor(Math.random() * words.length)]!

/** Returns a name to start from: easy to say, hard to collide. */
export const suggestName = (): string =>
  `${pick(qualities)}-${pick(things)}-${Math.floor(Math.random() * 90) + 10}`

/** Returns what is wrong with a resource's name, or nothing. The server decides; this only says so sooner. */
export const nameProblem = (name: string): string =>
  name === '' || isResourceName(name) ? '' : resourceNameHint
