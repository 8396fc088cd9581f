import type { LabelSelector } from '@slipway/contract'

/** The parameters of `fitsLabels`. */
export interface LabelParams {
  labelPairs: string[]
  labelPairsAbsent: string[]
  labelKeys: string[]
  labelKeysAbsent: string[]
}

/**
 * An SQL condition on a column of labels, with the parameters of `labelParams`. Without a selector, it is
 * true for all rows. It is a CASE for the same reason as `ifGiven`.
 */
export const fitsLabels = (column: string) =>
  `CASE WHEN ${column} @> ALL (:labelPairs::jsonb[]) AND NOT ${column} @> ANY (:labelPairsAbsent::jsonb[])
     AND ${column} ?& :labelKeys::text[] AND NOT ${column} ?| :labelKeysAbsent::text[] THEN true ELSE false END`

export const labelParams = (selector: LabelSelector | null): LabelParams => ({
  labelPairs: (selector?.pairs ?? []).map((pair) => JSON.stringify(pair)),
  labelPairsAbsent: (selector?.pairsAbsent ?? []).map((pair) => JSON.stringify(pair)),
  labelKeys: selector?.keys ?? [],
  labelKeysAbsent: selector?.keysAbsent ?? [],
})
