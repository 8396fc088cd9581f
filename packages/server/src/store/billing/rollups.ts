import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** The progress of closing a day. */
export interface RollupRow {
  day: string
  stage: 'usage' | 'organizations'
  /** The last project or organization that was processed. */
  done_up_to: string
}

const columns = `to_char(day, 'YYYY-MM-DD') AS day, stage, done_up_to`

/** Returns the roll-up in progress, if any. */
export const findRollup = statement<RollupRow>(
  'rollup_find',
  `SELECT ${columns} FROM usage_rollups ORDER BY day LIMIT 1`,
).one

const begin = statement<RollupRow, { day: string }>(
  'rollup_begin',
  `INSERT INTO usage_rollups (day) VALUES (:day) RETURNING ${columns}`,
)

export const advanceRollup = statement<never, { day: string; doneUpTo: string }, Tx>(
  'rollup_advance',
  'UPDATE usage_rollups SET done_up_to = :doneUpTo WHERE day = :day',
).runBy('day', 'doneUpTo')

export const startOrganizationStage = statement<never, { day: string }, Tx>(
  'rollup_turn',
  `UPDATE usage_rollups SET stage = 'organizations', done_up_to = DEFAULT WHERE day = :day`,
).runBy('day')

export const endRollup = statement<never, { day: string }, Tx>(
  'rollup_end',
  'DELETE FROM usage_rollups WHERE day = :day',
).runBy('day')

// Deleted projects are included, because they had costs before.
const lastOfShard = statement<{ id: string }, { after: string; limit: number }>(
  'rollup_shard',
  `SELECT id FROM (SELECT id FROM projects WHERE id > :after ORDER BY id LIMIT :limit) shard ORDER BY id DESC LIMIT 1`,
)

const nextWithUsage = statement<{ id: string }, { after: string; fromDay: string; toDay: string }>(
  'rollup_organization',
  `SELECT o.id FROM organizations o
   WHERE o.id > :after AND EXISTS (SELECT FROM projects p JOIN usage_days u ON u.project_id = p.id
                                   WHERE p.organization_id = o.id AND u.day BETWEEN :fromDay::date AND :toDay::date)
   ORDER BY o.id LIMIT 1`,
)

export const beginRollup = async (tx: Tx, day: string): Promise<RollupRow> => (await begin.one(tx, { day }))!

/** Returns the last of the next `limit` projects; undefined if there are none. */
export const findShardEnd = async (db: Queryable, after: string, limit: number) =>
  (await lastOfShard.one(db, { after, limit }))?.id

/** Returns the next organization with usage on these days, both included. */
export const findNextWithUsage = async (db: Queryable, after: string, fromDay: string, toDay: string) =>
  (await nextWithUsage.one(db, { after, fromDay, toDay }))?.id
