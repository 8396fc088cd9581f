import { nearWords } from '@slipway/contract/near-words'
import { UsageError } from '../errors/cli-error.ts'

/** In a longer list, only words of the same kind as the wrong word are shown. */
const longestList = 40

/** Returns the word as the set spells it, or throws an error that lists the supported words. */
export function knownWord(flag: string, given: string, known: readonly string[]): string {
  const found = known.find((word) => word.toLowerCase() === given.toLowerCase())
  if (found) return found
  const near = nearWords(given, known)
  throw new UsageError(`${flag} cannot be “${given}”.`, [
    ...(near.length > 0 ? [`Did you mean ${near.join(' or ')}?`] : []),
    `Known: ${listed(given, known).join(', ')}`,
  ])
}

/** For long lists such as event types: lists those of the same kind, or otherwise the kinds. */
function listed(given: string, known: readonly string[]): readonly string[] {
  if (known.length <= longestList) return known
  const kindOf = (word: string) => word.split('.')[0]!
  const sameKind = known.filter((word) => kindOf(word) === kindOf(given))
  return sameKind.length > 0 ? sameKind : [...new Set(known.map((word) => `${kindOf(word)}.…`))]
}
