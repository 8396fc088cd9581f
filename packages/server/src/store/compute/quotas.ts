import type { QuotaName } from '@slipway/contract'
import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'

export interface QuotaRow {
  name: QuotaName
  max: number
  used: number
}

export type QuotaAmounts = Partial<Record<QuotaName, number>>

export interface QuotaShortage {
  name: QuotaName
  requested: number
  available: number
}

const list = statement<QuotaRow, { projectId: string }>(
  'quota_list',
  'SELECT name, max, used FROM quotas WHERE project_id = :projectId',
)

// It takes all or nothing. The rows are locked in order of name, so that two requests never wait for each other; after
// a wait both the comparison and the sum see what the other one left. A quota without a row covers nothing.
const take = statement<QuotaShortage, { projectId: string; names: string[]; amounts: number[] }>(
  'quota_take',
  `WITH wanted AS (SELECT * FROM unnest(:names::text[], :amounts::bigint[]) AS w (name, amount)),
        held AS MATERIALIZED (
          SELECT q.name, q.max, q.used, w.amount FROM quotas q JOIN wanted w USING (name)
          WHERE q.project_id = :projectId ORDER BY q.name FOR NO KEY UPDATE OF q),
        short AS MATERIALIZED (
          SELECT w.name, w.amount AS requested, greatest(0, coalesce(h.max - h.used, 0)) AS available
          FROM wanted w LEFT JOIN held h USING (name)
          WHERE h.name IS NULL OR h.used + w.amount > h.max),
        taken AS (
          UPDATE quotas q SET used = q.used + h.amount FROM held h
          WHERE q.project_id = :projectId AND q.name = h.name AND NOT EXISTS (SELECT FROM short))
   SELECT * FROM short ORDER BY name`,
)

const giveBack = statement<never, { projectId: string; names: string[]; amounts: number[] }>(
  'quota_give_back',
  `WITH held AS MATERIALIZED (
          SELECT q.name, w.amount FROM quotas q
          JOIN unnest(:names::text[], :amounts::bigint[]) AS w (name, amount) USING (name)
          WHERE q.project_id = :projectId ORDER BY q.name FOR NO KEY UPDATE OF q)
   UPDATE quotas q SET used = q.used - h.amount FROM held h WHERE q.project_id = :projectId AND q.name = h.name`,
)

const put = statement<never, { projectId: string; names: string[]; limits: number[] }>(
  'quota_put',
  `INSERT INTO quotas (project_id, name, max)
   SELECT :projectId, w.name, w.max FROM unnest(:names::text[], :limits::bigint[]) AS w (name, max) ORDER BY w.name
   ON CONFLICT (project_id, name) DO UPDATE SET max = excluded.max`,
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

/** What is used stays used: a limit below it only stops further taking. */
export async function setQuotas(
  tx: Tx,
  projectId: string,
  items: { name: QuotaName; max: number }[],
): Promise<void> {
  await put.run(tx, { projectId, names: items.map(({ name }) => name), limits: items.map(({ max }) => max) })
}
