import { distance } from 'fastest-levenshtein'

/** The choice that was most likely meant; letter case counts for nothing. */
export function nearest<T extends string>(text: string, choices: readonly T[]): T {
  const wanted = text.slice(0, 200).toLowerCase()
  const distances = choices.map((choice) => distance(wanted, choice.toLowerCase()))
  return choices[distances.indexOf(Math.min(...distances))]!
}
