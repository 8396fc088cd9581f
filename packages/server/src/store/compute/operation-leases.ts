import type { Shares } from '../../domain/slot-shares.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'
import { type ClaimedOperation, LostLease, type OperationRow } from './operation-row.ts'

export { type ClaimedOperation, LostLease } from './operation-row.ts'

/** A worker's right to run an operation. */
export interface Lease {
  id: string
  token: string
}

interface ClaimParams {
  leaseToken: string
  leaseMs: number
  /** The locations of this worker's engines, and '' for operations without a location. */
  locations: string[]
  limit: number
}

interface ShareParams {
  projectIds: string[]
  heldByProject: number[]
  maxOfProject: number[]
  /** The limit for a project that is not listed. */
  maxOfNewProject: number
  organizationIds: string[]
  heldByOrganization: number[]
  maxOfOrganization: number[]
  /** The limit for an organization that is not listed. */
  maxOfNewOrganization: number
}

interface ClaimedRow {
  id: string
  was_held: boolean
  is_cancelled: boolean
}

/** The SQL condition for operations that a worker with these locations may claim. */
export const claimable = 'run_at <= slipway_now() AND location = ANY (:locations::text[])'

// A claim moves run_at to the end of the lease: a held operation is not due, but becomes due again if its
// holder dies.
const claimOf = (due: string) =>
  `UPDATE operation_queue q SET lease_token = :leaseToken, run_at = slipway_now() + :leaseMs * interval '1 millisecond'
   FROM (${due}) due
   WHERE q.operation_id = due.operation_id RETURNING q.operation_id AS id, due.was_held, q.is_cancelled`

const claim = statement<ClaimedRow, ClaimParams>(
  'operation_claim',
  claimOf(`SELECT operation_id, lease_token IS NOT NULL AS was_held FROM operation_queue
         WHERE ${claimable} ORDER BY run_at LIMIT :limit FOR UPDATE SKIP LOCKED`),
)

// Claims operations of the organization with the fewest slots first, and within it those of the project with
// the fewest slots. Organizations and projects stay within their shares. If several have the same number of
// slots, the one that was served least recently comes first. The statement makes one index lookup for each
// project with unfinished operations, regardless of the length of their queues, and skips operations that
// another worker is claiming.
const claimFairly = statement<ClaimedRow, ClaimParams & ShareParams>(
  'operation_claim_beside',
  claimOf(`SELECT operation_id, lease_token IS NOT NULL AS was_held FROM operation_queue
         WHERE run_at <= slipway_now() AND operation_id = ANY (ARRAY(
           WITH RECURSIVE busy AS (
             (SELECT project_id FROM operation_queue ORDER BY project_id LIMIT 1)
             UNION ALL
             SELECT (SELECT b.project_id FROM operation_queue b
                     WHERE b.project_id > busy.project_id ORDER BY b.project_id LIMIT 1)
             FROM busy WHERE busy.project_id IS NOT NULL),
           projects_due AS (
             SELECT busy.project_id, coalesce(h.held, 0) AS held, coalesce(h.max_held, :maxOfNewProject::int) AS max_held,
                    coalesce(h.turn, 0) AS turn
             FROM busy LEFT JOIN unnest(:projectIds::uuid[], :heldByProject::int[], :maxOfProject::int[])
               WITH ORDINALITY AS h (project_id, held, max_held, turn) ON h.project_id = busy.project_id
             WHERE busy.project_id IS NOT NULL),
           due AS (
             SELECT first.operation_id, first.run_at, p.turn,
                    p.held + row_number() OVER (PARTITION BY p.project_id ORDER BY first.run_at) AS in_project,
                    (SELECT organization_id FROM projects WHERE id = p.project_id) AS organization_id
             FROM projects_due p CROSS JOIN LATERAL (
               SELECT f.operation_id, f.run_at FROM operation_queue f
               WHERE f.project_id = p.project_id AND f.run_at <= slipway_now()
                 AND f.location = ANY (:locations::text[])
               ORDER BY f.run_at LIMIT least(:limit::int, greatest(0, p.max_held - p.held))) first),
           ranked AS (
             SELECT due.operation_id, due.run_at, due.in_project, coalesce(h.max_held, :maxOfNewOrganization::int) AS max_held,
                    coalesce(h.turn, 0) AS turn,
                    coalesce(h.held, 0) + row_number()
                      OVER (PARTITION BY due.organization_id ORDER BY due.in_project, due.turn, due.run_at) AS in_organization
             FROM due
             LEFT JOIN unnest(:organizationIds::uuid[], :heldByOrganization::int[], :maxOfOrganization::int[])
               WITH ORDINALITY AS h (organization_id, held, max_held, turn) ON h.organization_id = due.organization_id)
           SELECT operation_id FROM ranked WHERE in_organization <= max_held
           ORDER BY in_organization, turn, run_at LIMIT :limit))
         FOR UPDATE SKIP LOCKED`),
)

// This is a separate statement after the claim, so that it sees everything that the previous holder wrote under
// its lease.
const claimed = statement<OperationRow & { now: Date; organization_id: string }, { ids: string[] }>(
  'operation_claimed',
  `SELECT o.*, slipway_now() AS now, (SELECT organization_id FROM projects p WHERE p.id = o.project_id) AS organization_id
   FROM operations o WHERE o.id = ANY (:ids::uuid[])`,
)

// Every statement that locks several rows of the queue locks them in the order of their ids.
const renew = statement<Lease, Columns<Lease> & { leaseMs: number }>(
  'operation_renew',
  `WITH held AS MATERIALIZED (
     SELECT q.operation_id FROM unnest(:id::uuid[], :token::uuid[]) AS held (id, token)
     JOIN operation_queue q ON q.operation_id = held.id AND q.lease_token = held.token
     ORDER BY q.operation_id FOR UPDATE OF q)
   UPDATE operation_queue q SET run_at = slipway_now() + :leaseMs * interval '1 millisecond'
   FROM held WHERE q.operation_id = held.operation_id RETURNING q.operation_id AS id, q.lease_token AS token`,
)

const heldBy = `
     SELECT operation_id AS id FROM operation_queue
     WHERE operation_id = :id AND lease_token = :token AND NOT is_cancelled FOR UPDATE`

// Gives this attempt a new generation and writes it to the resource, so that later attempts get higher ones.
// The resource's generation can be higher than the operation's, if a restored database has adopted it from an engine.
const fence = statement<{ generation: number }, Lease>(
  'operation_fence',
  `WITH held AS (${heldBy}),
   fenced AS (
     UPDATE operations o SET generation = 1 + greatest(o.generation,
            (SELECT v.generation FROM vms v WHERE v.id = o.resource_id),
            (SELECT d.generation FROM disks d WHERE d.id = o.resource_id),
            (SELECT c.generation FROM captures c WHERE c.id = o.resource_id))
     FROM held WHERE o.id = held.id
     RETURNING resource_id, generation),
   vm AS (UPDATE vms v SET generation = f.generation FROM fenced f WHERE v.id = f.resource_id),
   disk AS (UPDATE disks d SET generation = f.generation FROM fenced f WHERE d.id = f.resource_id),
   capture AS (UPDATE captures c SET generation = f.generation FROM fenced f WHERE c.id = f.resource_id),
   rule AS (UPDATE firewall_rules r SET generation = f.generation FROM fenced f WHERE r.id = f.resource_id)
   SELECT generation FROM fenced`,
)

/** The columns that the runner writes while an operation runs. */
export type Progress = Pick<
  OperationRow,
  'step' | 'scratch' | 'step_log' | 'attempts' | 'last_error' | 'is_undoing' | 'failure' | 'is_stuck'
>

type ProgressParams = Omit<Progress, 'step_log'> & { step_log: string }

const progressColumns = `step = :step, scratch = :scratch, step_log = :step_log, attempts = :attempts,
          last_error = :last_error, is_undoing = :is_undoing, failure = :failure, is_stuck = :is_stuck`

const progressParams = ({ id, token }: Lease, progress: Progress): Lease & ProgressParams => ({
  ...progress,
  step_log: JSON.stringify(progress.step_log),
  id,
  token,
})

// Changes nothing if the worker has lost its lease or the operation was cancelled in the meantime.
const advance = statement<{ id: string }, Lease & ProgressParams>(
  'operation_advance',
  `WITH held AS (${heldBy})
   UPDATE operations o SET ${progressColumns} FROM held WHERE o.id = held.id RETURNING o.id`,
)

const park = statement<{ id: string }, Lease & ProgressParams & { ms: number }>(
  'operation_park',
  `WITH held AS (
     UPDATE operation_queue SET lease_token = NULL,
            run_at = CASE WHEN is_cancelled THEN slipway_now() ELSE slipway_now() + :ms * interval '1 millisecond' END
     WHERE operation_id = :id AND lease_token = :token RETURNING operation_id AS id)
   UPDATE operations o SET ${progressColumns} FROM held WHERE o.id = held.id RETURNING o.id`,
)

/** Claims the operations that have been due for the longest time. */
export const claimOperations = async (db: Queryable, params: ClaimParams) =>
  readClaimed(db, await claim.all(db, params))

/** Claims operations of the owners that hold the fewest slots, each within its share. */
export const claimOperationsFairly = async (
  db: Queryable,
  params: ClaimParams,
  { projects, organizations }: { projects: Shares; organizations: Shares },
) =>
  readClaimed(
    db,
    await claimFairly.all(db, {
      ...params,
      projectIds: projects.ids,
      heldByProject: projects.held,
      maxOfProject: projects.max,
      maxOfNewProject: projects.maxOfNew,
      organizationIds: organizations.ids,
      heldByOrganization: organizations.held,
      maxOfOrganization: organizations.max,
      maxOfNewOrganization: organizations.maxOfNew,
    }),
  )

async function readClaimed(
  db: Queryable,
  taken: ClaimedRow[],
): Promise<(ClaimedOperation & { organization_id: string })[]> {
  if (taken.length === 0) return []
  const rows = await claimed.all(db, { ids: taken.map(({ id }) => id) })
  return rows.map((row) => ({ ...row, ...taken.find(({ id }) => id === row.id)! }))
}

/** Returns the leases that are lost. */
export async function renewLeases(db: Queryable, leases: Lease[], leaseMs: number): Promise<Lease[]> {
  const renewed = await renew.all(db, { ...columns(leases, ['id', 'token']), leaseMs })
  return leases.filter((lease) => !renewed.some(({ id, token }) => id === lease.id && token === lease.token))
}

/** Returns a new generation. Engines reject calls of earlier attempts, which have lower generations. */
export async function fenceOperation(tx: Tx, lease: Lease): Promise<number> {
  return requireHeld(await fence.one(tx, lease)).generation
}

/** Records progress and keeps the lease. */
export async function advanceOperation(db: Queryable, lease: Lease, progress: Progress): Promise<void> {
  requireHeld(await advance.one(db, progressParams(lease, progress)))
}

/** Records progress and releases the lease. The operation is due again after `ms`. */
export async function parkOperation(db: Queryable, lease: Lease, progress: Progress, ms: number) {
  requireHeld(await park.one(db, { ...progressParams(lease, progress), ms }))
}

function requireHeld<Row>(row: Row | undefined): Row {
  if (!row) throw new LostLease()
  return row
}
