import type { QuotaName } from '@slipway/contract'
import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'

export interface QuotaRow {
  name: QuotaName
  max: number
  used: number
  available: number
}

export type QuotaAmounts = Partial<Record<QuotaName, number>>

export interface QuotaShortage {
  name: QuotaName
  holder: 'project' | 'organization'
  requested: number
  available: number
}

/** Stands for the limit where neither the project nor its organization was given one. */
const mostOfAnything = 1_000_000_000

// The limit that is met first is shown, and what can still be had under both.
const list = statement<QuotaRow, { projectId: string }>(
  'quota_list',
  `SELECT q.name, coalesce(least(q.max, o.max), ${mostOfAnything}) AS max, q.used,
          greatest(0, coalesce(least(q.max - q.used, o.max - o.used), ${mostOfAnything} - q.used)) AS available
   FROM quotas q JOIN projects p ON p.id = q.project_id
   LEFT JOIN organization_quotas o ON o.organization_id = p.organization_id AND o.name = q.name
   WHERE q.project_id = :projectId`,
)

// The rows of the organization that a change to the project's rows will touch, by trigger, are locked before those.
const lockedWhole = (which: string) => `
  whole AS MATERIALIZED (
    SELECT o.name, o.max, o.used FROM organization_quotas o
    WHERE o.organization_id = (SELECT organization_id FROM projects WHERE id = :projectId) AND ${which}
    ORDER BY o.name FOR NO KEY UPDATE OF o)`
const afterWhole = '(SELECT count(*) FROM whole) >= 0'

// It takes all or nothing. The rows are locked in order, the organization's before the project's and each by name, so
// that two requests never wait for each other; after a wait both the comparison and the sum see what the other one left.
// A project's quota without a row covers nothing; one without a limit is covered as far as the organization's goes.
const take = statement<QuotaShortage, { projectId: string; names: string[]; amounts: number[] }>(
  'quota_take',
  `WITH wanted AS (SELECT * FROM unnest(:names::text[], :amounts::bigint[]) AS w (name, amount)),
        ${lockedWhole('o.name = ANY (:names::text[])')},
        held AS MATERIALIZED (
          SELECT q.name, q.max, q.used, w.amount FROM quotas q JOIN wanted w USING (name)
          WHERE q.project_id = :projectId AND ${afterWhole} ORDER BY q.name FOR NO KEY UPDATE OF q),
        short AS MATERIALIZED (
          SELECT w.name, 'project' AS holder, w.amount AS requested,
                 greatest(0, coalesce(h.max - h.used, 0)) AS available
          FROM wanted w LEFT JOIN held h USING (name) WHERE h.name IS NULL OR h.used + w.amount > h.max
          UNION ALL
          SELECT w.name, 'organization', w.amount, greatest(0, o.max - o.used)
          FROM wanted w JOIN whole o USING (name) WHERE o.used + w.amount > o.max),
        taken AS (
          UPDATE quotas q SET used = q.used + h.amount FROM held h
          WHERE q.project_id = :projectId AND q.name = h.name AND NOT EXISTS (SELECT FROM short))
   SELECT * FROM short ORDER BY name, available, holder DESC LIMIT 1`,
)

const giveBack = statement<never, { projectId: string; names: string[]; amounts: number[] }>(
  'quota_give_back',
  `WITH ${lockedWhole('o.name = ANY (:names::text[])')},
        held AS MATERIALIZED (
          SELECT q.name, w.amount FROM quotas q
          JOIN unnest(:names::text[], :amounts::bigint[]) AS w (name, amount) USING (name)
          WHERE q.project_id = :projectId AND ${afterWhole} ORDER BY q.name FOR NO KEY UPDATE OF q)
   UPDATE quotas q SET used = q.used - h.amount FROM held h WHERE q.project_id = :projectId AND q.name = h.name`,
)

const put = statement<never, { projectId: string; names: string[]; limits: (number | null)[] }>(
  'quota_put',
  `INSERT INTO quotas (project_id, name, max)
   SELECT :projectId, w.name, w.max FROM unnest(:names::text[], :limits::bigint[]) AS w (name, max) ORDER BY w.name
   ON CONFLICT (project_id, name) DO UPDATE SET max = excluded.max`,
)

// Every creation in a project claims its quota: taking the rows away waits for those under way and stops later ones.
const remove = statement<never, { projectId: string }>(
  'quota_delete',
  `WITH ${lockedWhole('true')} DELETE FROM quotas WHERE project_id = :projectId AND ${afterWhole}`,
)

function columnsOf(quotas: QuotaAmounts): { names: string[]; amounts: number[] } {
  const entries = Object.entries(quotas).filter(([, amount]) => amount > 0)
  return { names: entries.map(([name]) => name), amounts: entries.map(([, amount]) => amount) }
}

export const listQuotas = (db: Queryable, projectId: string): Promise<QuotaRow[]> =>
  list.all(db, { projectId })

/** Takes all of it and returns null, or takes nothing and returns the first quota that does not cover it. */
export async function takeQuota(
  tx: Tx,
  projectId: string,
  amounts: QuotaAmounts,
): Promise<QuotaShortage | null> {
  const columns = columnsOf(amounts)
  if (columns.names.length === 0) return null
  return (await take.one(tx, { projectId, ...columns })) ?? null
}

export async function giveBackQuota(tx: Tx, projectId: string, amounts: QuotaAmounts): Promise<void> {
  const columns = columnsOf(amounts)
  if (columns.names.length > 0) await giveBack.run(tx, { projectId, ...columns })
}

/** What is used stays used: a limit below it only stops further taking. Null: the organization's alone holds. */
export async function setQuotas(
  tx: Tx,
  projectId: string,
  items: { name: QuotaName; max: number | null }[],
): Promise<void> {
  await put.run(tx, { projectId, names: items.map(({ name }) => name), limits: items.map(({ max }) => max) })
}

export const deleteQuotas = (tx: Tx, projectId: string) => remove.run(tx, { projectId })
