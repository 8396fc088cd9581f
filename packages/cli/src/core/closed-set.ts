import { nearWords } from '@slipway/contract/near-words'
import { UsageError } from '../errors/cli-error.ts'

/** A longer list is shortened in error messages. */
const maxListed = 40

/** Returns the matching supported word, or throws an error that lists the supported words. */
export function knownWord(flag: string, given: string, known: readonly string[]): string {
  const found = known.find((word) => word.toLowerCase() === given.toLowerCase())
  if (found) return found
  const near = nearWords(given, known)
  throw new UsageError(`${flag} cannot be “${given}”.`, [
    ...(near.length > 0 ? [`Did you mean ${near.join(' or ')}?`] : []),
    `Supported: ${shortenList(given, known).join(', ')}`,
  ])
}

/**
 * Shortens a long list, such as all event types. Returns the words that have the same text before the first
 * dot as the given word. If there are none, returns only the texts before the dot, such as `vm.…`.
 */
function shortenList(given: string, known: readonly string[]): readonly string[] {
  if (known.length <= maxListed) return known
  const kindOf = (word: string) => word.split('.')[0]!
  const sameKind = known.filter((word) => kindOf(word) === kindOf(given))
  return sameKind.length > 0 ? sameKind : [...new Set(known.map((word) => `${kindOf(word)}.…`))]
}
