import type { FailureCode, OperationName, OperationResourceType } from '@slipway/contract'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import type { OperationRow } from '../store/compute/operation-row.ts'
import type { Requester } from '../store/events/events.ts'

/** How a step ends. `scratch` is merged into the data that later steps see. */
export type Outcome =
  | { flow: 'next'; scratch?: Record<string, unknown> }
  | { flow: 'wait'; ms: number; scratch?: Record<string, unknown> }
  | { flow: 'done'; result: unknown }
  | { flow: 'fail'; code: FailureCode; message: string }

export const next = (scratch?: Record<string, unknown>): Outcome => ({
  flow: 'next',
  ...(scratch && { scratch }),
})
export const wait = (ms: number, scratch?: Record<string, unknown>): Outcome => ({
  flow: 'wait',
  ms,
  ...(scratch && { scratch }),
})
export const done = (result: unknown): Outcome => ({ flow: 'done', result })
export const fail = (code: FailureCode, message: string): Outcome => ({ flow: 'fail', code, message })

/** Thrown if a step's write finds its resource in an unexpected state. An immediate retry would not help. */
export class UnexpectedState extends Error {}

/** The result of an operation that was cancelled by the deletion of its resource. */
export const cancelled = { code: 'cancelled', message: 'The resource is being deleted.' }

/** The running operation, as its steps see it. */
export interface Work {
  operation: OperationRow
  scratch: Record<string, unknown>
  /** Why the operation is being undone; null if it is not. */
  failure: OperationRow['failure']
  /** The result of `prefetch`, if the operation began in the process that wrote it. */
  prefetched: Promise<unknown> | undefined
  /** The service's time. */
  nowMs: number
  services: Services
  /** Aborts when the step times out, the lease is lost or the process stops. */
  signal: AbortSignal
}

/**
 * A step is a short transaction (`tx`), which commits together with the step's outcome, or engine work
 * (`call`), which never runs inside a transaction. Both may run twice, and both can be undone. The first step
 * of most operations has neither: the request's own transaction has already done the work of this step, so only
 * its undo is defined.
 */
export interface Step {
  name: string
  tx?: (work: Work, tx: Tx) => Promise<Outcome>
  /** Operations that reach the step at the same time share its transaction. */
  isShared?: true
  /** Called after the transaction failed with `UnexpectedState`. Returns the error to report. */
  onUnexpectedState?: (work: Work) => Promise<Error>
  call?: (work: Work) => Promise<Outcome>
  undoTx?: (work: Work, tx: Tx) => Promise<void>
  undoCall?: (work: Work) => Promise<void>
  /** How long the step may exceed the operation's deadline. */
  graceS?: number
  /** The failure to report if the operation's deadline passes in this step. */
  onDeadline?: { code: FailureCode; message: string }
}

export interface Definition {
  kind: string
  name: OperationName
  resourceType: OperationResourceType
  /** Counted from the start of the operation; `configured` is `[operations] vm_deadline_s`. */
  deadlineS: number | 'configured'
  /**
   * True for deletions, and for operations that only wait for the operations of group members. A thrown
   * error or the deadline does not undo such an operation: its step is retried until it succeeds. If a step
   * throws an error after the deadline, the operation is stuck.
   */
  isRetriedNotUndone?: true
  steps: Step[]
  /**
   * Runs in the transaction in which an operator abandons the operation. It must leave the resource in a
   * state from which its tenant or a reconciler can continue.
   */
  onAbandon?: (tx: Tx, by: Requester, operation: OperationRow) => Promise<unknown>
}
