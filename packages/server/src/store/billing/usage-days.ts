import type { Labels, MeteredType } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/**
 * Sums are text, because they are exact and may exceed 2^53. The unit of `cost_usd_ms` is USD per hour times
 * milliseconds (`usdOfMs` converts it).
 */
export interface UsageDayRow {
  day: string
  project_id: string
  location: string
  resource_type: MeteredType
  product_name: string
  quantity_ms: string
  cost_usd_ms: string | null
}

export interface UsageResourceRow extends UsageDayRow {
  resource_id: string
  resource_name: string
  labels: Labels
  /** The reservation that the VM used last on the day. */
  reservation_id: string | null
}

export interface UsageLabelRow extends UsageDayRow {
  label_value: string
}

/** The usage of one project and product on one day of a month, in all locations. */
export type MonthRow = Omit<UsageDayRow, 'location'>

// A price is valid until the product's next price. Before its first price, a product has no price.
const pricePeriods = `
  SELECT product_name, usd,
         tstzrange(valid_from, lead(valid_from) OVER (PARTITION BY product_name ORDER BY valid_from)) AS period
  FROM prices
  UNION ALL
  SELECT product_name, NULL, tstzrange(NULL, min(valid_from)) FROM prices GROUP BY product_name`

/**
 * Adds up the intervals of each UTC day from `bounds.open_day` until the time `bounds.until`. Intervals are
 * split at the end of a day and at price changes. If `until` has passed, the result does not depend on when
 * the query runs.
 */
const metered = (
  scope: string,
  resource: { columns: string; groups: string } = { columns: '', groups: '' },
) => `
  SELECT d.day, i.project_id, i.location, i.resource_type, i.product_name, ${resource.columns}
         sum(i.quantity * piece.ms) AS quantity_ms, sum(i.quantity * piece.ms * p.usd) AS cost_usd_ms
  FROM bounds b
  CROSS JOIN LATERAL (
    SELECT b.open_day + n AS day,
           tstzrange((b.open_day + n)::timestamp AT TIME ZONE 'UTC',
                     least((b.open_day + n + 1)::timestamp AT TIME ZONE 'UTC', b.until)) AS span
    FROM generate_series(0, (b.until AT TIME ZONE 'UTC')::date - b.open_day) AS n
  ) d
  JOIN usage_intervals i ON i.period && d.span AND ${scope}
  LEFT JOIN (${pricePeriods}) p ON p.product_name = i.product_name AND p.period && (i.period * d.span)
  CROSS JOIN LATERAL (SELECT i.period * d.span * coalesce(p.period, '(,)'::tstzrange) AS span) cut
  CROSS JOIN LATERAL (
    SELECT ((extract(epoch FROM upper(cut.span)) - extract(epoch FROM lower(cut.span))) * 1000)::bigint AS ms
  ) piece
  GROUP BY 1, 2, 3, 4, 5 ${resource.groups}`

/** Groups by resource, with its latest name and labels. */
const byResource = {
  columns: `i.resource_id, (array_agg(i.resource_name ORDER BY i.period DESC))[1] AS resource_name,
         (array_agg(i.labels ORDER BY i.period DESC))[1] AS labels,
         (array_agg(i.reservation_id ORDER BY i.period DESC))[1] AS reservation_id,`,
  groups: ', i.resource_id',
}

const nextOpenDay = statement<{ day: string | null; overdue_s: number | null }, { rollupAtUtc: string }>(
  'usage_day_next',
  // A transaction that changed an interval just before midnight has a minute to commit.
  `SELECT to_char(day, 'YYYY-MM-DD') AS day,
          extract(epoch FROM slipway_now() - (day + 1)::timestamp AT TIME ZONE 'UTC'
            - greatest(:rollupAtUtc::interval, '1 minute'))::float8 AS overdue_s
   FROM (SELECT coalesce((SELECT max(day) + 1 FROM usage_days_closed),
                         (SELECT (min(lower(period)) AT TIME ZONE 'UTC')::date FROM usage_intervals)) AS day) next`,
)

const insertDay = statement<never, { day: string; after: string; upTo: string }>(
  'usage_day_insert',
  `WITH bounds AS (SELECT :day::date AS open_day, (:day::date + 1)::timestamp AT TIME ZONE 'UTC' AS until)
   INSERT INTO usage_days (day, project_id, location, resource_type, product_name, quantity_ms, cost_usd_ms)
   ${metered('i.project_id > :after AND i.project_id <= :upTo')}`,
)
const insertResources = statement<never, { day: string; after: string; upTo: string }>(
  'usage_resource_day_insert',
  `WITH bounds AS (SELECT :day::date AS open_day, (:day::date + 1)::timestamp AT TIME ZONE 'UTC' AS until)
   INSERT INTO usage_resource_days (day, project_id, location, resource_type, product_name, resource_id, resource_name,
                                    labels, reservation_id, quantity_ms, cost_usd_ms)
   ${metered('i.project_id > :after AND i.project_id <= :upTo', byResource)}
   ON CONFLICT DO NOTHING`,
)
export const markDayClosed = statement<never, { day: string }, Tx>(
  'usage_day_close',
  'INSERT INTO usage_days_closed (day) VALUES (:day)',
).runBy('day')

const isClosed = statement<{ is_closed: boolean }, { day: string }>(
  'usage_day_is_closed',
  'SELECT EXISTS (SELECT FROM usage_days_closed WHERE day = :day) AS is_closed',
)

const matchesFilter = `project_id = ANY (:projectIds::uuid[]) AND day BETWEEN :startDate AND :endDate
     AND (:location::text IS NULL OR location = :location)
     AND (:resourceType::text IS NULL OR resource_type = :resourceType)`

const list = statement<UsageDayRow, UsageFilter & { projectIds: string[] }>(
  'usage_day_list',
  `SELECT to_char(day, 'YYYY-MM-DD') AS day, project_id, location, resource_type, product_name,
          quantity_ms::text, cost_usd_ms::text
   FROM usage_days
   WHERE ${matchesFilter}
   ORDER BY usage_days.day, project_id, location, resource_type DESC, product_name`,
)

const listByResource = statement<UsageResourceRow, UsageFilter & { projectIds: string[] }>(
  'usage_resource_list',
  `SELECT to_char(day, 'YYYY-MM-DD') AS day, project_id, location, resource_type, product_name, resource_id,
          resource_name, labels, reservation_id, quantity_ms::text, cost_usd_ms::text
   FROM usage_resource_days r WHERE ${matchesFilter}
   ORDER BY r.day, project_id, location, resource_type DESC, product_name, resource_name, resource_id`,
)

const listByLabel = statement<UsageLabelRow, UsageFilter & { projectIds: string[]; key: string }>(
  'usage_label_list',
  `SELECT to_char(day, 'YYYY-MM-DD') AS day, project_id, location, resource_type, product_name,
          coalesce(labels ->> :key::text, '') AS label_value, sum(quantity_ms)::text AS quantity_ms,
          sum(cost_usd_ms)::text AS cost_usd_ms
   FROM usage_resource_days r WHERE ${matchesFilter}
   GROUP BY r.day, project_id, location, resource_type, product_name, label_value
   ORDER BY r.day, project_id, location, resource_type DESC, product_name, label_value`,
)

const lastClosed = statement<{ closed_at: Date | null; today: string }>(
  'usage_day_last',
  `SELECT (SELECT closed_at FROM usage_days_closed ORDER BY day DESC LIMIT 1) AS closed_at,
          to_char(slipway_now() AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS today`,
)

// Closed days are read from their stored rows. Other days are computed from the intervals up to now.
const monthBounds = (month: string) => `
  SELECT first_day, until, least(greatest(first_day, coalesce((SELECT max(day) + 1 FROM usage_days_closed), first_day)),
                                 (first_day + interval '1 month')::date) AS open_day
  FROM (SELECT m.first_day,
               least(slipway_now(), (m.first_day + interval '1 month') AT TIME ZONE 'UTC') AS until
        FROM (SELECT ${month} AS first_day) m) month`
const monthRows = (scope: (projectId: string) => string) => `
  SELECT u.day, u.project_id, u.location, u.resource_type, u.product_name, u.quantity_ms, u.cost_usd_ms
  FROM usage_days u, bounds b
  WHERE u.day >= b.first_day AND u.day < b.open_day AND ${scope('u.project_id')}
  UNION ALL
  SELECT * FROM (${metered(scope('i.project_id'))}) live`
const thisMonth = `date_trunc('month', slipway_now() AT TIME ZONE 'UTC')::date`

const month = statement<MonthRow, { projectIds: string[]; monthStart: string | null }>(
  'usage_month',
  `WITH bounds AS (${monthBounds(`coalesce(:monthStart::date, ${thisMonth})`)})
   SELECT to_char(day, 'YYYY-MM-DD') AS day, project_id, resource_type, product_name,
          sum(quantity_ms)::text AS quantity_ms, sum(cost_usd_ms)::text AS cost_usd_ms
   FROM (${monthRows((id) => `${id} = ANY (:projectIds::uuid[])`)}) m
   GROUP BY m.day, project_id, resource_type, product_name
   ORDER BY m.day, project_id, resource_type DESC, product_name`,
)

const rate = statement<{ usd_per_hour: string; now: Date; ms_left: string }, { projectIds: string[] }>(
  'usage_rate',
  `SELECT coalesce(sum(i.quantity * p.usd), 0)::text AS usd_per_hour, slipway_now() AS now,
          ((extract(epoch FROM (${thisMonth} + interval '1 month') AT TIME ZONE 'UTC') - extract(epoch FROM slipway_now()))
           * 1000)::bigint::text AS ms_left
   FROM (SELECT) one
   LEFT JOIN usage_intervals i ON i.project_id = ANY (:projectIds::uuid[]) AND upper_inf(i.period)
   LEFT JOIN LATERAL (SELECT usd FROM prices WHERE product_name = i.product_name AND valid_from <= slipway_now()
                      ORDER BY valid_from DESC LIMIT 1) p ON true`,
)

const projectIds = statement<{ id: string }, { organizationId: string }>(
  'usage_projects',
  'SELECT id FROM projects WHERE organization_id = :organizationId',
)

/**
 * Returns the first day that is not closed, and how many seconds ago it could have been closed (negative if
 * it cannot be closed yet); null if nothing was ever metered.
 */
export async function findNextOpenDay(
  db: Queryable,
  rollupAtUtc: string,
): Promise<{ day: string; overdueSeconds: number } | null> {
  const row = await nextOpenDay.one(db, { rollupAtUtc })
  return row?.day ? { day: row.day, overdueSeconds: row.overdue_s ?? 0 } : null
}

/**
 * Writes the usage of these projects, which becomes visible when the day is closed. The caller holds the
 * roll-up lock.
 */
export async function addUsageOfDay(tx: Tx, day: string, projects: { after: string; upTo: string }) {
  await insertDay.run(tx, { day, ...projects })
  await insertResources.run(tx, { day, ...projects })
}

export const isDayClosed = async (db: Queryable, day: string) => (await isClosed.one(db, { day }))!.is_closed

export interface UsageFilter {
  startDate: string
  endDate: string
  location: string | null
  resourceType: string | null
}

export const listUsage = (db: Queryable, ids: string[], filter: UsageFilter): Promise<UsageDayRow[]> =>
  list.all(db, { ...filter, projectIds: ids })

export const listUsageByResource = (db: Queryable, ids: string[], filter: UsageFilter) =>
  listByResource.all(db, { ...filter, projectIds: ids })

/** A resource without the label has the value ''. */
export const listUsageByLabel = (db: Queryable, ids: string[], key: string, filter: UsageFilter) =>
  listByLabel.all(db, { ...filter, projectIds: ids, key })

/** Returns when usage was last written, and the current UTC day. */
export const usageState = async (db: Queryable) => (await lastClosed.one(db))!

/** Lists the usage of a whole month, or of the current month until now. */
export const listMonth = (
  db: Queryable,
  ids: string[],
  monthStart: string | null = null,
): Promise<MonthRow[]> => month.all(db, { projectIds: ids, monthStart })

/** Returns the current cost per hour, and the time until the end of the month. */
export const currentRate = async (db: Queryable, ids: string[]) => (await rate.one(db, { projectIds: ids }))!

/** Includes deleted projects, because they had costs before. */
export const listProjectIds = async (db: Queryable, organizationId: string): Promise<string[]> =>
  (await projectIds.all(db, { organizationId })).map(({ id }) => id)
