import type { Operation, OperationName, OperationState, OperationType } from '@slipway/contract'

export interface StepEntry {
  name: string
  state: 'running' | 'done' | 'failed' | 'undone'
  started_at: string
  completed_at: string
}

export interface OperationFailure {
  code: string
  message: string
}

export interface OperationRow {
  id: string
  project_id: string
  kind: string
  name: OperationName
  resource_type: OperationType
  resource_id: string
  /** Where it is done; '' anywhere. */
  location: string
  generation: number
  request: Record<string, unknown>
  state: OperationState
  result: Operation['result']
  step: number
  scratch: Record<string, unknown>
  step_log: StepEntry[]
  attempts: number
  last_error: string
  failure: OperationFailure | null
  is_undoing: boolean
  is_stuck: boolean
  actor: string
  request_id: string
  started_at: Date
  completed_at: Date | null
}

/** What whoever began it is told. */
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
  /** It was taken from a worker whose lease ran out. */
  was_held: boolean
  is_cancelled: boolean
  /** What its first step reads, on its way since its birth. */
  ahead?: Promise<unknown>
}

/** The lease is gone, or the operation was cancelled: nothing was written, and the transaction rolls back. */
export class LostLease extends Error {}
