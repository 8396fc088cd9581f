import type { EventType, Labels } from '@slipway/contract'
import { type Call, type Engine, EngineError } from '../engines/engine.ts'
import type { Tx } from '../postgres/database.ts'
import type { Work } from '../runner/operation.ts'
import type { Services } from '../services.ts'
import { emit } from '../store/events/events.ts'

/**
 * Returns the engine of a location. The error is `unavailable`, so that another process, which may have the
 * engine, tries the operation.
 */
export function engineAt(services: Pick<Services, 'engines'>, location: string): Engine {
  const engine = services.engines.get(location)
  if (!engine) throw new EngineError('unavailable', `the location ${location} has no engine in this process`)
  return engine
}

const shortestPauseMs = 250
export const longestPauseMs = 5_000

/**
 * Returns how long to wait before the next inspection of work that the engine began at `sinceMs`: a quarter
 * of the time elapsed so far. The engine reports when the work has ended (`watch`); inspections cover lost
 * reports.
 */
export const nextInspectionMs = (sinceMs: number, nowMs: number): number =>
  Math.min(longestPauseMs, Math.max(shortestPauseMs, (nowMs - sinceMs) / 4))

export const callOf = (work: Work): Call => ({ generation: work.operation.generation, signal: work.signal })

/** Emits an event about the operation's resource. */
export const emitResource = (
  tx: Tx,
  { operation }: Work,
  { name, labels }: { name: string; labels: Labels },
  type: EventType,
): Promise<void> =>
  emit(tx, {
    type,
    resourceType: operation.resource_type,
    resourceId: operation.resource_id,
    projectId: operation.project_id,
    actor: operation.actor,
    requestId: operation.request_id,
    data: { name, labels, operation_id: operation.id },
  })
