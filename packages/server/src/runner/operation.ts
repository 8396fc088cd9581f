import type { FailureCode, OperationName, OperationType } from '@slipway/contract'
import type { Services } from '../services.ts'
import type { OperationRow } from '../store/compute/operations.ts'
import type { Tx } from '../store/database.ts'
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

/** Thrown in a step's transaction: why it failed is looked up when the transaction is over, on whatever connection is free. */
export class Unexplained extends Error {
  readonly why: () => Promise<Error>
  constructor(why: () => Promise<Error>) {
    super('a step was refused')
    this.why = why
  }
}

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
 * One step: a short transaction (`tx`, `txAll`), which commits together with the step's outcome, or engine work (`call`), which
 * never holds a transaction. Each may run twice; each has its undo of the same two kinds. The first step of most
 * operations has neither: it is what the request's own transaction did, and only its undo is left to say.
 */
export interface Step {
  name: string
  tx?: (work: Work, tx: Tx) => Promise<Outcome>
  /** As `tx`, for all that came to it while others were at it: one is a list of one. Outcomes are in the order of works. */
  txAll?: (works: Work[], tx: Tx) => Promise<Outcome[]>
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
