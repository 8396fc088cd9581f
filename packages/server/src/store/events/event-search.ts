import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import type { PositionRange } from './events.ts'

/**
 * An event gets its position after its transaction has committed, so positions can differ from the order of
 * times by the duration of a transaction. No transaction takes this long.
 */
const slack = `interval '10 minutes'`

const positions = statement<
  { above: number | null; below: number | null },
  { start: Date | null; end: Date | null }
>(
  'event_positions',
  `SELECT (SELECT position FROM events WHERE created_at < :start::timestamptz - ${slack}
           ORDER BY created_at DESC LIMIT 1) AS above,
          (SELECT position FROM events WHERE created_at >= :end::timestamptz + ${slack}
           ORDER BY created_at LIMIT 1) AS below`,
).oneBy('start', 'end')

/**
 * Returns the positions that enclose all events of a period, so that a list does not read earlier and later
 * events. A null time means no limit.
 */
export async function findPositions(
  db: Queryable,
  start: Date | null,
  end: Date | null,
): Promise<PositionRange> {
  if (start === null && end === null) return { above: 0, below: null }
  const { above, below } = (await positions(db, start, end))!
  return { above: above ?? 0, below }
}

/** Returns when the oldest unfinished operation of the project started; the current time if there is none. */
export const findUnfinishedSince = statement<{ since: Date }, { projectId: string }>(
  'operation_unfinished_since',
  `SELECT coalesce(min(o.started_at), slipway_now()) AS since
   FROM operation_queue q, LATERAL (SELECT started_at FROM operations WHERE id = q.operation_id LIMIT 1) o
   WHERE q.project_id = :projectId`,
).oneBy('projectId')

/** A search that matches more resources is too general to be useful. */
const maxResources = 200

/**
 * Finds resources of a project, including deleted ones, by a part of their id or name. It searches the names in
 * events, because the rows of deleted resources no longer exist.
 */
export const findEventResources = statement<{ resource_id: string }, { projectId: string; text: string }>(
  'event_resources',
  `SELECT resource_id FROM events
   WHERE project_id = :projectId
     AND (strpos(resource_id, lower(:text)) > 0
          OR strpos(lower(coalesce(data ->> 'name', data ->> 'url', '')), lower(:text)) > 0)
   GROUP BY resource_id ORDER BY max(position) DESC LIMIT ${maxResources}`,
).allBy('projectId', 'text')
