import { nearWords } from '@slipway/contract/near-words'

/** Returns the most similar choice, if one is similar enough. */
export const nearest = <T extends string>(text: string, choices: readonly T[]): T | undefined =>
  nearWords(text, choices)[0]

export const didYouMean = (suggestion: string | undefined): string =>
  suggestion ? `; did you mean ${suggestion}?` : ''

/** Returns the rest of a message that begins with the field, for a value that is not one of the choices. */
export const oneOf = (given: unknown, choices: readonly string[]): string =>
  `must be one of ${choices.join(', ')}${didYouMean(typeof given === 'string' ? nearest(given, choices) : undefined)}`
