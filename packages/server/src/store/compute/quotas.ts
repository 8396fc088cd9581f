import type { QuotaName } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { gathered, perTransaction } from '../../postgres/gathered.ts'
import { statement } from '../../postgres/statement.ts'

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

/** The limit that is met first is shown, and what can still be had under both. */
export const listQuotas = statement<QuotaRow, { projectId: string }>(
  'quota_list',
  `SELECT q.name, coalesce(least(q.max, o.max), ${mostOfAnything}) AS max, q.used,
          greatest(0, coalesce(least(q.max - q.used, o.max - o.used), ${mostOfAnything} - q.used)) AS available
   FROM quotas q JOIN projects p ON p.id = q.project_id
   LEFT JOIN organization_quotas o ON o.organization_id = p.organization_id AND o.name = q.name
   WHERE q.project_id = :projectId`,
).allBy('projectId')

interface QuotaKeys {
  projectIds: string[]
  names: string[]
}

/** The rows of `wanted`: those of organizations, then those of projects; `inOrder` says how they are taken. */
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
const besideRows = `LEFT JOIN own q ON q.project_id = w.project_id AND q.name = w.name
   LEFT JOIN whole o ON o.organization_id = w.organization_id AND o.name = w.name`

const look = statement<QuotaState, QuotaKeys>(
  'quota_look',
  `WITH wanted AS MATERIALIZED (
          SELECT w.project_id, w.name, p.organization_id
          FROM (SELECT DISTINCT * FROM unnest(:projectIds::uuid[], :names::text[]) AS each (project_id, name)) w
          JOIN projects p ON p.id = w.project_id),
        ${rowsOf(() => '')}
   SELECT w.project_id, w.organization_id, w.name, q.name IS NOT NULL AS is_there, q.max, q.used,
          o.max AS whole_max, o.used AS whole_used
   FROM wanted w ${besideRows}`,
)

// The organization's rows, which a change to the projects' rows touches by trigger, are locked before those: each in
// order, so that two who want several never wait for each other. After a wait both rows are as the other one left them.
// Nothing is taken, and the transaction fails, unless every quota covers what is taken of it; what is given back is always
// covered.
const change = statement<never, QuotaKeys & { amounts: number[] }>(
  'quota_change',
  `WITH wanted AS MATERIALIZED (
          SELECT c.project_id, c.name, c.amount, p.organization_id
          FROM unnest(:projectIds::uuid[], :names::text[], :amounts::bigint[]) AS c (project_id, name, amount)
          JOIN projects p ON p.id = c.project_id),
        ${rowsOf((columns, row) => `ORDER BY ${columns} FOR NO KEY UPDATE OF ${row}`)},
        changed AS (
          UPDATE quotas q SET used = q.used + w.amount FROM wanted w
          WHERE q.project_id = w.project_id AND q.name = w.name AND (SELECT count(*) FROM own) >= 0)
   SELECT assert_or_abort(coalesce(bool_and(w.amount <= 0 OR q.name IS NOT NULL
                                     AND w.amount <= coalesce(q.max - q.used, w.amount)
                                     AND w.whole_amount <= coalesce(o.max - o.used, w.whole_amount)), true),
                 'a quota does not cover it')
   FROM (SELECT *, sum(amount) OVER (PARTITION BY organization_id, name) AS whole_amount FROM wanted) w ${besideRows}`,
)

interface QuotaState {
  project_id: string
  organization_id: string
  name: QuotaName
  is_there: boolean
  max: number | null
  used: number | null
  whole_max: number | null
  whole_used: number | null
}

const put = statement<never, { projectId: string; names: string[]; limits: (number | null)[] }>(
  'quota_put',
  `INSERT INTO quotas (project_id, name, max)
   SELECT :projectId, w.name, w.max FROM unnest(:names::text[], :limits::bigint[]) AS w (name, max) ORDER BY w.name
   ON CONFLICT (project_id, name) DO UPDATE SET max = excluded.max`,
)

/**
 * Every creation in a project claims its quota: taking the rows away waits for those under way and stops later ones.
 */
export const deleteQuotas = statement<never, { projectId: string }, Tx>(
  'quota_delete',
  `WITH whole AS MATERIALIZED (
     SELECT o.name FROM organization_quotas o
     WHERE o.organization_id = (SELECT organization_id FROM projects WHERE id = :projectId)
     ORDER BY o.name FOR NO KEY UPDATE OF o)
   DELETE FROM quotas WHERE project_id = :projectId AND (SELECT count(*) FROM whole) >= 0`,
).runBy('projectId')

/** What one request takes of its project's quotas. */
export interface QuotaRequest {
  projectId: string
  amounts: QuotaAmounts
}

type Wanted = { projectId: string; name: QuotaName; amount: number }

const wantedOf = ({ projectId, amounts }: QuotaRequest): Wanted[] =>
  Object.entries(amounts)
    .filter(([, amount]) => amount > 0)
    .map(([name, amount]) => ({ projectId, name: name as QuotaName, amount }))

const keysOf = (wanted: Wanted[]): QuotaKeys => ({
  projectIds: wanted.map(({ projectId }) => projectId),
  names: wanted.map(({ name }) => name),
})

/** Reads what is left of the quotas of a request. The requests of a batch share the result. */
export const readQuotas = gathered(async (tx: Tx, requests: QuotaRequest[]): Promise<QuotasLeft[]> => {
  const left = quotasLeft(tx)
  const unread = requests.flatMap(wantedOf).filter((wanted) => !left.has(wanted))
  if (unread.length > 0) left.add(await look.all(tx, keysOf(unread)))
  return requests.map(() => left)
})

/**
 * Takes what the request wants. It is sent with the commit, so that its rows are locked for the shortest time. If more is
 * wanted than there is by now, the transaction is tried again, and then reads what is short.
 */
export const takeQuota = (tx: Tx, request: QuotaRequest): Promise<void> =>
  tx.enqueue(changeQuotas, wantedOf(request))

export const giveBackQuota = (tx: Tx, projectId: string, amounts: QuotaAmounts): Promise<void> =>
  tx.enqueue(
    changeQuotas,
    wantedOf({ projectId, amounts }).map((wanted) => ({ ...wanted, amount: -wanted.amount })),
  )

/** Each row is changed once, by the sum. */
async function changeQuotas(tx: Tx, requests: Wanted[][]): Promise<void> {
  const changes = requests.flat()
  const sums = new Map<string, Wanted>()
  for (const { projectId, name, amount } of changes) {
    const key = `${projectId} ${name}`
    sums.set(key, { projectId, name, amount: amount + (sums.get(key)?.amount ?? 0) })
  }
  const summed = [...sums.values()]
  if (summed.length > 0)
    await change.run(tx, { ...keysOf(summed), amounts: summed.map(({ amount }) => amount) })
}

/** What is left of quotas, as they were read. */
export class QuotasLeft {
  readonly #rows = new Map<string, QuotaState>()
  /** By project or organization, and name. */
  readonly #left = new Map<string, number>()

  has({ projectId, name }: Wanted): boolean {
    return this.#rows.has(`${projectId} ${name}`)
  }

  /** What requests have taken of quotas that were read before stays taken. */
  add(rows: QuotaState[]): void {
    for (const row of rows) {
      const { project_id, organization_id, name } = row
      this.#rows.set(`${project_id} ${name}`, row)
      this.#set(`${project_id} ${name}`, leftOf(row.is_there ? row.max : 0, row.used))
      this.#set(`${organization_id} ${name}`, leftOf(row.whole_max, row.whole_used))
    }
  }

  #set(key: string, left: number): void {
    if (!this.#left.has(key)) this.#left.set(key, left)
  }

  /**
   * Gives the request all that it wants or nothing; returns null, or the first quota that does not cover it. A project's
   * quota without a row covers nothing; one without a limit covers what the organization's does.
   */
  take(request: QuotaRequest): QuotaShortage | null {
    const wanted = wantedOf(request)
    const short = wanted.flatMap((each) => this.#shortagesOf(each)).sort(byImportance)
    if (short[0]) return short[0]
    for (const { projectId, name, amount } of wanted)
      for (const key of this.#keysOf(projectId, name)) this.#left.set(key, this.#left.get(key)! - amount)
    return null
  }

  #keysOf(projectId: string, name: string): [project: string, organization: string] {
    const organizationId = this.#rows.get(`${projectId} ${name}`)?.organization_id
    return [`${projectId} ${name}`, `${organizationId} ${name}`]
  }

  #shortagesOf({ projectId, name, amount }: Wanted): QuotaShortage[] {
    const [project, organization] = this.#keysOf(projectId, name)
    const left = { project: this.#left.get(project) ?? 0, organization: this.#left.get(organization) ?? 0 }
    return (['project', 'organization'] as const)
      .filter((holder) => left[holder] < amount)
      .map((holder) => ({ name, holder, requested: amount, available: Math.max(0, left[holder]) }))
  }
}

const quotasLeft = perTransaction(() => new QuotasLeft())

const leftOf = (max: number | null, used: number | null) =>
  max === null ? Number.POSITIVE_INFINITY : max - (used ?? 0)

/** The first by name is told; of the two holders the one with less, and the project when they are alike. */
const byImportance = (a: QuotaShortage, b: QuotaShortage) =>
  a.name === b.name
    ? a.available - b.available || (a.holder === 'project' ? -1 : 1)
    : a.name < b.name
      ? -1
      : 1

/** What is used stays used: a limit below it only stops further taking. Null: the organization's alone holds. */
export async function setQuotas(
  tx: Tx,
  projectId: string,
  items: { name: QuotaName; max: number | null }[],
): Promise<void> {
  await put.run(tx, { projectId, names: items.map(({ name }) => name), limits: items.map(({ max }) => max) })
}
