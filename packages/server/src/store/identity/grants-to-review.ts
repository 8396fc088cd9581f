import type { Tx } from '../database.ts'
import { statement } from '../statement.ts'

const take = statement<{ description: string }>(
  'grants_to_review_take',
  `WITH gone AS (DELETE FROM grants_to_review RETURNING id, description)
   SELECT description FROM gone ORDER BY id`,
)

/** Returns what an upgrade left for an operator to look at, once. */
export const takeGrantsToReview = async (tx: Tx): Promise<string[]> =>
  (await take.all(tx)).map(({ description }) => description)
