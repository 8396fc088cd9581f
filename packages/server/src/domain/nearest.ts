import { distance } from 'fastest-levenshtein'

/** The choice that was most likely meant; letter case counts for nothing. */
export function nearest<T extends string>(text: string, choices: readonly T[]): T {
  const wanted = text.slice(0, 200).toLowerCase()
  const distances = choices.map((choice) => distance(wanted, choice.toLowerCase()))
  return choices[distances.indexOf(Math.min(...distances))]!
}

/** Whether a choice is so near that it was probably meant. */
export const isNear = (text: string, choice: string): boolean =>
  distance(text.slice(0, 200).toLowerCase(), choice.toLowerCase()) <= Math.max(1, choice.length / 3)

export const didYouMean = (suggestion: string | undefined): string =>
  suggestion ? `; did you mean ${suggestion}?` : ''

/** What is wrong with a value that is none of these, as the rest of a sentence that begins with the field. */
export const oneOf = (given: unknown, choices: readonly string[]): string =>
  `must be one of ${choices.join(', ')}${didYouMean(typeof given === 'string' ? nearest(given, choices) : undefined)}`
