import type { FailureCode, OperationName, OperationType } from '@slipway/contract'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import type { OperationRow } from '../store/compute/operation-row.ts'
import type { Requester } from '../store/events/events.ts'

/** How a step ends. `scratch` is merged into what later steps see. */
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

/** A step's write did not find its resource as it must be. Trying again at once would not help. */
export class Unmet extends Error {}

/** How an operation ends that makes way for its resource's deletion. */
export const cancelled = { code: 'cancelled', message: 'The resource is being deleted.' }

/** The operation under way, as its steps see it. */
export interface Work {
  operation: OperationRow
  scratch: Record<string, unknown>
  /** What was read for it when it was begun, if it began at once. */
  ahead: Promise<unknown> | undefined
  /** The service's time. */
  nowMs: number
  services: Services
  /** Falls when the step's time is up, the lease is lost or the process stops. */
  signal: AbortSignal
}

/**
 * One step: a short transaction (`tx`), which commits together with the step's outcome, or engine work (`call`), which
 * never holds a transaction. Each may run twice; each has its undo of the same two kinds. The first step of most
 * operations has neither: it is what the request's own transaction did, and only its undo is left to say.
 */
export interface Step {
  name: string
  tx?: (work: Work, tx: Tx) => Promise<Outcome>
  /** Its transaction is shared by operations that come to the step while others are at it. */
  isShared?: true
  /** Says why, after its transaction failed with `Unmet`. */
  onUnmet?: (work: Work) => Promise<Error>
  call?: (work: Work) => Promise<Outcome>
  undoTx?: (work: Work, tx: Tx) => Promise<void>
  undoCall?: (work: Work) => Promise<void>
  /** What it means when time runs out here. */
  onDeadline?: { code: FailureCode; message: string }
}

export interface Definition {
  kind: string
  name: OperationName
  resourceType: OperationType
  /** Since its beginning; `configured`: as `[operations] vm_deadline_s` says. */
  deadlineS: number | 'configured'
  /** Tears down: nothing to undo, tried until it holds; past its deadline it shows as stuck. */
  isTeardown?: true
  steps: Step[]
  /**
   * After an operator gave it up as it is, in the same transaction: its resource comes to rest where its tenant or a
   * reconciler can go on. Without it the resource is at rest already.
   */
  onAbandon?: (tx: Tx, by: Requester, operation: OperationRow) => Promise<unknown>
}
