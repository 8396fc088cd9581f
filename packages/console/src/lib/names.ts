import { isResourceName, resourceNameHint } from '@slipway/contract/names'

const adjectives = [
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
const nouns = [
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
  `${pick(adjectives)}-${pick(nouns)}-${Math.floor(Math.random() * 90) + 10}`

/** Returns what is wrong with a resource name; empty if it is valid. The server validates it again. */
export const nameProblem = (name: string): string =>
  name === '' || isResourceName(name) ? '' : resourceNameHint
