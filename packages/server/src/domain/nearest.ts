import { nearWords } from '@slipway/contract/near-words'

/** Returns the most similar choice, if one is similar enough. */
export const nearest = <T extends string>(text: string, choices: readonly T[]): T | undefined =>
  nearWords(text, choices)[0]

export const didYouMean = (suggestion: string | undefined): string =>
  suggestion ? `; did you mean ${suggestion}?` : ''

/** For a value that is not one of the choices: returns the part of the message that follows the name of the field. */
export const oneOf = (given: unknown, choices: readonly string[]): string =>
  `must be one of ${choices.join(', ')}${didYouMean(typeof given === 'string' ? nearest(given, choices) : undefined)}`
