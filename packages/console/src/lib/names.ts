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

/** Suggests a name for a new VM. */
export const suggestName = (): string =>
  `${pick(qualities)}-${pick(things)}-${Math.floor(Math.random() * 90) + 10}`

/** Returns the problem of a resource name; empty if it is valid. The server validates it again. */
export const nameProblem = (name: string): string =>
  name === '' || isResourceName(name) ? '' : resourceNameHint
