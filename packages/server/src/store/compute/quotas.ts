import type { QuotaName } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { gathered, perTransaction } from '../../postgres/gathered.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

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

/** Shown as the limit if neither the project nor its organization has one. */
const unlimited = 1_000_000_000

/** Shows the lower of the project's and the organization's limits, and what is left under both. */
export const listQuotas = statement<QuotaRow, { projectId: string }>(
  'quota_list',
  `SELECT q.name, coalesce(least(q.max, o.max), ${unlimited}) AS max, q.used,
          greatest(0, coalesce(least(q.max - q.used, o.max - o.used), ${unlimited} - q.used)) AS available
   FROM quotas q JOIN projects p ON p.id = q.project_id
   LEFT JOIN organization_quotas o ON o.organization_id = p.organization_id AND o.name = q.name
   WHERE q.project_id = :projectId`,
).allBy('projectId')

interface QuotaKey {
  projectId: string
  name: QuotaName
}

/**
 * The quota rows for `wanted`: first of organizations, then of projects. `inOrder` adds an ORDER BY and a
 * lock.
 */
const rowsOf = (inOrder: (columns: string, row: string) => string) => `
        whole AS MATERIALIZED (
          SELECT o.organization_id, o.name, o.max, o.used
          FROM (SELECT DISTINCT organization_id, name FROM wanted) w
          JOIN organization_quotas o ON o.organization_id = w.organization_id AND o.name = w.name
          ${inOrder('o.organization_id, o.name', 'o')}),
        own AS MATERIALIZED (
          SELECT q.project_id, q.name, q.max, q.used
          FROM wanted w JOIN quotas q ON q.project_id = w.project_id AND q.name = w.name
          WHERE (SELECT count(*) FROM whole) >= 0 ${inOrder('q.project_id, q.name', 'q')})`
const joinRows = `LEFT JOIN own q ON q.project_id = w.project_id AND q.name = w.name
   LEFT JOIN whole o ON o.organization_id = w.organization_id AND o.name = w.name`

const read = statement<QuotaState, Columns<QuotaKey>>(
  'quota_look',
  `WITH wanted AS MATERIALIZED (
          SELECT w.project_id, w.name, p.organization_id
          FROM (SELECT DISTINCT * FROM unnest(:projectId::uuid[], :name::text[]) AS each (project_id, name)) w
          JOIN projects p ON p.id = w.project_id),
        ${rowsOf(() => '')}
   SELECT w.project_id, w.organization_id, w.name, q.name IS NOT NULL AS is_there, q.max, q.used,
          o.max AS whole_max, o.used AS whole_used
   FROM wanted w ${joinRows}`,
)

// Locks the organization's rows before the project's rows, because a trigger on the project's rows updates the
// organization's. Both are locked in order, so that two transactions never deadlock. After waiting for a lock, both
// rows show what the other transaction wrote. The transaction fails unless every quota covers the amount that
// is taken; a release always succeeds.
const change = statement<never, Columns<QuotaChange>>(
  'quota_change',
  `WITH wanted AS MATERIALIZED (
          SELECT c.project_id, c.name, c.amount, p.organization_id
          FROM unnest(:projectId::uuid[], :name::text[], :amount::bigint[]) AS c (project_id, name, amount)
          JOIN projects p ON p.id = c.project_id),
        ${rowsOf((columns, row) => `ORDER BY ${columns} FOR NO KEY UPDATE OF ${row}`)},
        changed AS (
          UPDATE quotas q SET used = q.used + w.amount FROM wanted w
          WHERE q.project_id = w.project_id AND q.name = w.name AND (SELECT count(*) FROM own) >= 0)
   SELECT assert_or_abort(coalesce(bool_and(w.amount <= 0 OR q.name IS NOT NULL
                                     AND w.amount <= coalesce(q.max - q.used, w.amount)
                                     AND w.whole_amount <= coalesce(o.max - o.used, w.whole_amount)), true),
                 'a quota is exceeded')
   FROM (SELECT *, sum(amount) OVER (PARTITION BY organization_id, name) AS whole_amount FROM wanted) w ${joinRows}`,
)

interface QuotaState {
  project_id: string
  organization_id: string
  name: QuotaName
  /** True if the project has a row for the quota. */
  is_there: boolean
  max: number | null
  used: number | null
  /** The limit and the usage of the organization. */
  whole_max: number | null
  whole_used: number | null
}

interface QuotaLimit {
  name: QuotaName
  max: number | null
}

const put = statement<never, { projectId: string } & Columns<QuotaLimit>>(
  'quota_put',
  `INSERT INTO quotas (project_id, name, max)
   SELECT :projectId, w.name, w.max FROM unnest(:name::text[], :max::bigint[]) AS w (name, max) ORDER BY w.name
   ON CONFLICT (project_id, name) DO UPDATE SET max = excluded.max`,
)

/**
 * Every creation in a project takes quota, so deleting the rows waits for creations in progress and prevents
 * later ones.
 */
export const deleteQuotas = statement<never, { projectId: string }, Tx>(
  'quota_delete',
  `WITH whole AS MATERIALIZED (
     SELECT o.name FROM organization_quotas o
     WHERE o.organization_id = (SELECT organization_id FROM projects WHERE id = :projectId)
     ORDER BY o.name FOR NO KEY UPDATE OF o)
   DELETE FROM quotas WHERE project_id = :projectId AND (SELECT count(*) FROM whole) >= 0`,
).runBy('projectId')

/** The amounts that one request takes from its project's quotas. */
interface QuotaRequest {
  projectId: string
  amounts: QuotaAmounts
}

interface QuotaChange extends QuotaKey {
  amount: number
}

const changesOf = ({ projectId, amounts }: QuotaRequest): QuotaChange[] =>
  Object.entries(amounts)
    .filter(([, amount]) => amount > 0)
    .map(([name, amount]) => ({ projectId, name: name as QuotaName, amount }))

/** Reads what is left of the quotas of a request. The requests of a batch share the result. */
export const readQuotas = gathered(async (tx: Tx, requests: QuotaRequest[]): Promise<QuotasLeft[]> => {
  const left = quotasLeft(tx)
  const unread = requests.flatMap(changesOf).filter((key) => !left.has(key))
  if (unread.length > 0) left.add(await read.all(tx, columns(unread, ['projectId', 'name'])))
  return requests.map(() => left)
})

/**
 * Takes the amounts of the request. The statement is sent with the commit, so that its rows are locked for the
 * shortest time. If a quota no longer covers them, the transaction is retried, and then reads the shortage.
 */
export const takeQuota = (tx: Tx, request: QuotaRequest): Promise<void> =>
  tx.enqueue(changeQuotas, changesOf(request))

export const releaseQuota = (tx: Tx, projectId: string, amounts: QuotaAmounts): Promise<void> =>
  tx.enqueue(
    changeQuotas,
    changesOf({ projectId, amounts }).map((change) => ({ ...change, amount: -change.amount })),
  )

/** Changes each row once, by the sum of its changes. */
async function changeQuotas(tx: Tx, requests: QuotaChange[][]): Promise<void> {
  const sums = new Map<string, QuotaChange>()
  for (const change of requests.flat()) {
    const sum = sums.get(`${change.projectId} ${change.name}`)?.amount ?? 0
    sums.set(`${change.projectId} ${change.name}`, { ...change, amount: sum + change.amount })
  }
  if (sums.size > 0) await change.run(tx, columns([...sums.values()], ['projectId', 'name', 'amount']))
}

/** The remaining amounts of quotas: as they were read, minus what requests of the transaction have taken. */
class QuotasLeft {
  /** The key is the id of a project or organization and the name of the quota. */
  readonly #left = new Map<string, number>()
  readonly #organizationIds = new Map<string, string>()

  has({ projectId, name }: QuotaKey): boolean {
    return this.#left.has(`${projectId} ${name}`)
  }

  /**
   * If the project has no row for a quota, nothing is left. If the row has no limit, only the organization's
   * limit applies.
   */
  add(rows: QuotaState[]): void {
    for (const row of rows) {
      const { project_id, organization_id, name } = row
      this.#organizationIds.set(project_id, organization_id)
      this.#setOnce(`${project_id} ${name}`, leftOf(row.is_there ? row.max : 0, row.used))
      this.#setOnce(`${organization_id} ${name}`, leftOf(row.whole_max, row.whole_used))
    }
  }

  /** Does not replace a known amount, because requests may already have reduced it. */
  #setOnce(key: string, left: number): void {
    if (!this.#left.has(key)) this.#left.set(key, left)
  }

  /** Takes all amounts of the request and returns null, or takes nothing and returns the first shortage. */
  take(request: QuotaRequest): QuotaShortage | null {
    const changes = changesOf(request)
    const [shortage] = changes.flatMap((change) => this.#shortagesOf(change)).sort(inOrderOfReport)
    if (shortage) return shortage
    for (const change of changes)
      for (const [, key] of this.#holdersOf(change)) this.#left.set(key, this.#left.get(key)! - change.amount)
    return null
  }

  #holdersOf({ projectId, name }: QuotaKey): [QuotaShortage['holder'], key: string][] {
    const organizationId = this.#organizationIds.get(projectId)
    return [
      ['project', `${projectId} ${name}`],
      ['organization', `${organizationId} ${name}`],
    ]
  }

  #shortagesOf(change: QuotaChange): QuotaShortage[] {
    const { name, amount: requested } = change
    return this.#holdersOf(change)
      .map(([holder, key]) => ({ name, holder, requested, available: Math.max(0, this.#left.get(key) ?? 0) }))
      .filter(({ available }) => available < requested)
  }
}

const quotasLeft = perTransaction(() => new QuotasLeft())

const leftOf = (max: number | null, used: number | null) =>
  max === null ? Number.POSITIVE_INFINITY : max - (used ?? 0)

/**
 * Sorts by name, then by the amount left, lowest first. If both holders have the same amount, the project
 * comes first.
 */
function inOrderOfReport(a: QuotaShortage, b: QuotaShortage): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1
  return a.available - b.available || (a.holder === 'project' ? -1 : 1)
}

/** A limit below the current use only prevents further use. With null, only the organization's limit applies. */
export const setQuotas = (tx: Tx, projectId: string, items: QuotaLimit[]) =>
  put.run(tx, { projectId, ...columns(items, ['name', 'max']) })
