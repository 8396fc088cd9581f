import type { Operation, OperationName, OperationResourceType, OperationState } from '@slipway/contract'

export interface StepEntry {
  name: string
  state: 'running' | 'done' | 'failed' | 'undone'
  started_at: string
  completed_at: string
}

export interface OperationRow {
  id: string
  project_id: string
  kind: string
  name: OperationName
  resource_type: OperationResourceType
  resource_id: string
  /** Empty if any worker can run the operation. */
  location: string
  generation: number
  request: Record<string, unknown>
  /** The request with digests in place of its scripts; null if it has no scripts. */
  listed_request: Record<string, unknown> | null
  state: OperationState
  result: Operation['result']
  step: number
  scratch: Record<string, unknown>
  step_log: StepEntry[]
  attempts: number
  last_error: string
  failure: { code: string; message: string } | null
  is_undoing: boolean
  is_stuck: boolean
  actor: string
  request_id: string
  started_at: Date
  completed_at: Date | null
}

/** The part of an operation that the response to its request shows. */
export type BegunOperation = Pick<
  OperationRow,
  | 'id'
  | 'name'
  | 'resource_type'
  | 'resource_id'
  | 'request'
  | 'state'
  | 'result'
  | 'started_at'
  | 'completed_at'
>

export interface ClaimedOperation extends OperationRow {
  /** The service's time at the claim. */
  now: Date
  /** True if the operation was claimed after the lease of another worker expired. */
  was_held: boolean
  is_cancelled: boolean
  /** What the first step needs, read when the operation was written (`AdmittedOperation.prefetch`). */
  prefetched?: Promise<unknown> | undefined
}

/** Thrown if the lease is lost or the operation was cancelled: nothing was written, and the transaction rolls back. */
export class LostLease extends Error {}
