import type { Queryable, Tx } from '../database.ts'
import { statement } from '../statement.ts'
import type { OperationRow } from './operations.ts'

export interface ClaimedOperation extends OperationRow {
  /** The service's time at the claim. */
  now: Date
  /** It was taken from a worker whose lease ran out. */
  was_held: boolean
}

/** What a worker holds an operation by. */
export interface Lease {
  id: string
  token: string
}

/** The lease is gone, or the operation was cancelled: nothing was written, and the transaction rolls back. */
export class LostLease extends Error {}

interface ClaimParams {
  leaseToken: string
  leaseMs: number
  /** Those that this worker's engines can do, and '' */
  locations: string[]
  most: number
}

// A claim moves run_at to the lease's end: held work is simply not due, and falls due again if its holder dies.
const claimOf = (due: string) =>
  `UPDATE operations o SET lease_token = :leaseToken, lease_until = slipway_now() + :leaseMs * interval '1 millisecond',
          run_at = slipway_now() + :leaseMs * interval '1 millisecond'
   FROM (${due}) due
   WHERE o.id = due.id RETURNING o.*, slipway_now() AS now, due.was_held`

const claim = statement<ClaimedOperation, ClaimParams>(
  'operation_claim',
  claimOf(`SELECT id, lease_token IS NOT NULL AS was_held FROM operations
         WHERE state = 'IN_PROGRESS' AND run_at <= slipway_now() AND location = ANY (:locations::text[])
         ORDER BY run_at LIMIT :most FOR UPDATE SKIP LOCKED`),
)

// Steps over the queues of projects that have their share, however long they are: one look for each project with
// unfinished work. What another worker takes at the same moment is skipped.
const claimBeside = statement<ClaimedOperation, ClaimParams & { saturatedProjects: string[] }>(
  'operation_claim_beside',
  claimOf(`SELECT id, lease_token IS NOT NULL AS was_held FROM operations
         WHERE state = 'IN_PROGRESS' AND run_at <= slipway_now() AND id = ANY (ARRAY(
           WITH RECURSIVE busy AS (
             (SELECT project_id FROM operations WHERE state = 'IN_PROGRESS' ORDER BY project_id LIMIT 1)
             UNION ALL
             SELECT (SELECT b.project_id FROM operations b
                     WHERE b.state = 'IN_PROGRESS' AND b.project_id > busy.project_id ORDER BY b.project_id LIMIT 1)
             FROM busy WHERE busy.project_id IS NOT NULL)
           SELECT first.id FROM busy CROSS JOIN LATERAL (
             SELECT f.id, f.run_at FROM operations f
             WHERE f.state = 'IN_PROGRESS' AND f.project_id = busy.project_id AND f.run_at <= slipway_now()
               AND f.location = ANY (:locations::text[])
             ORDER BY f.run_at LIMIT :most) first
           WHERE busy.project_id <> ALL (:saturatedProjects::uuid[])
           ORDER BY first.run_at LIMIT :most))
         FOR UPDATE SKIP LOCKED`),
)

const renew = statement<Lease, { ids: string[]; tokens: string[]; leaseMs: number }>(
  'operation_renew',
  `UPDATE operations o SET lease_until = slipway_now() + :leaseMs * interval '1 millisecond',
          run_at = slipway_now() + :leaseMs * interval '1 millisecond'
   FROM unnest(:ids::uuid[], :tokens::uuid[]) AS held (id, token)
   WHERE o.id = held.id AND o.lease_token = held.token AND o.state = 'IN_PROGRESS' RETURNING held.*`,
)

// This attempt gets a generation of its own, at the resource too: whoever comes after us counts on from there.
const fence = statement<{ generation: number }, Lease>(
  'operation_fence',
  `WITH fenced AS (
     UPDATE operations SET generation = generation + 1
     WHERE id = :id AND lease_token = :token AND state = 'IN_PROGRESS' AND NOT is_cancelled
     RETURNING resource_id, generation),
   vm AS (UPDATE vms v SET generation = f.generation FROM fenced f WHERE v.id = f.resource_id),
   disk AS (UPDATE disks d SET generation = f.generation FROM fenced f WHERE d.id = f.resource_id),
   rule AS (UPDATE firewall_rules r SET generation = f.generation FROM fenced f WHERE r.id = f.resource_id)
   SELECT generation FROM fenced`,
)

/** What the runner writes as an operation goes on. */
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

// A worker that lost its lease, or whose operation was cancelled meanwhile, changes nothing.
const advance = statement<{ id: string }, Lease & ProgressParams>(
  'operation_advance',
  `UPDATE operations SET ${progressColumns}
   WHERE id = :id AND lease_token = :token AND state = 'IN_PROGRESS' AND NOT is_cancelled RETURNING id`,
)

const park = statement<{ id: string }, Lease & ProgressParams & { ms: number }>(
  'operation_park',
  `UPDATE operations SET ${progressColumns}, lease_token = NULL, lease_until = NULL,
          run_at = CASE WHEN is_cancelled THEN slipway_now() ELSE slipway_now() + :ms * interval '1 millisecond' END
   WHERE id = :id AND lease_token = :token AND state = 'IN_PROGRESS' RETURNING id`,
)

export function claimOperations(
  db: Queryable,
  saturatedProjects: string[],
  params: ClaimParams,
): Promise<ClaimedOperation[]> {
  return saturatedProjects.length === 0
    ? claim.all(db, params)
    : claimBeside.all(db, { ...params, saturatedProjects })
}

/** Returns the leases that are lost. */
export async function renewLeases(db: Queryable, leases: Lease[], leaseMs: number): Promise<Lease[]> {
  const ids = leases.map(({ id }) => id)
  const tokens = leases.map(({ token }) => token)
  const stand = await renew.all(db, { ids, tokens, leaseMs })
  return leases.filter((lease) => !stand.some(({ id, token }) => id === lease.id && token === lease.token))
}

/** From the returned generation on, engines refuse earlier attempts. */
export async function fenceOperation(tx: Tx, lease: Lease): Promise<number> {
  return held(await fence.one(tx, lease)).generation
}

/** Records progress and keeps the lease. */
export async function advanceOperation(db: Queryable, lease: Lease, progress: Progress): Promise<void> {
  held(await advance.one(db, progressParams(lease, progress)))
}

/** Records progress and gives the lease back; the operation is due again after `ms`. */
export async function parkOperation(db: Queryable, lease: Lease, progress: Progress, ms: number) {
  held(await park.one(db, { ...progressParams(lease, progress), ms }))
}

function held<Row>(row: Row | undefined): Row {
  if (!row) throw new LostLease()
  return row
}
