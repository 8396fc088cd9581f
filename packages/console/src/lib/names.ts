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

/** A name to start from: easy to say, hard to collide. */
export const suggestName = (): string =>
  `${pick(qualities)}-${pick(things)}-${Math.floor(Math.random() * 90) + 10}`

const pattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/
/** What is wrong with a resource's name; empty when nothing is. The server decides; this only says so sooner. */
export function nameProblem(name: string): string {
  if (name === '' || pattern.test(name)) return ''
  return 'Letters, digits, _ and -, at most 63, starting with a letter or digit.'
}
