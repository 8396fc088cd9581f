import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import type { PositionRange } from './events.ts'

/** Longer than any transaction. An event gets its position after the commit, so times and positions differ by less. */
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
 * Returns positions between which all events of a period are, so that a list does not read the events before and after it.
 * A null time is no limit.
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

/** More resources than a reader can tell apart by their names. */
const mostResources = 200

/**
 * Finds the resources of a project by a part of the id or of the name, also deleted ones. The names are those in the events,
 * because events of operations have no name.
 */
export const findEventResources = statement<{ resource_id: string }, { projectId: string; text: string }>(
  'event_resources',
  `SELECT resource_id FROM events
   WHERE project_id = :projectId
     AND (strpos(resource_id, lower(:text)) > 0
          OR strpos(lower(coalesce(data ->> 'name', data ->> 'url', '')), lower(:text)) > 0)
   GROUP BY resource_id ORDER BY max(position) DESC LIMIT ${mostResources}`,
).allBy('projectId', 'text')
