import { distance } from 'fastest-levenshtein'

/** Only this many characters of a word are compared, because a request can contain text of any length. */
const maxWordLength = 200
const maxSuggestions = 3

/** Returns the words that were probably meant, the most similar first. Letter case is ignored. */
export function nearWords<T extends string>(given: string, known: readonly T[]): T[] {
  const wanted = given.slice(0, maxWordLength).toLowerCase()
  return known
    .map((word) => ({ word, edits: distance(wanted, word.toLowerCase()) }))
    .filter(({ word, edits }) => isNear(wanted, word.toLowerCase(), edits))
    .sort((a, b) => a.edits - b.edits)
    .slice(0, maxSuggestions)
    .map(({ word }) => word)
}

/** Accepts a few typos, two swapped letters, or a part of the word. */
function isNear(wanted: string, word: string, edits: number): boolean {
  if (wanted.length < 2) return edits === 0
  return edits <= Math.max(1, wanted.length / 3) || word.includes(wanted) || isSwapped(wanted, word, edits)
}

const isSwapped = (wanted: string, word: string, edits: number): boolean =>
  edits === 2 && sorted(wanted) === sorted(word)

const sorted = (word: string): string => [...word].sort().join('')
