import { type Call, type Engine, EngineError } from '../engines/engine.ts'
import type { Work } from '../runner/operation.ts'
import type { Services } from '../services.ts'

/** A process may lag a configuration behind: that its engines cannot do it says nothing about the request. */
export function engineAt(services: Pick<Services, 'engines'>, location: string): Engine {
  const engine = services.engines.get(location)
  if (!engine) throw new EngineError('unavailable', `the location ${location} has no engine in this process`)
  return engine
}

const shortestPauseMs = 250
export const longestPauseMs = 5_000

/**
 * When to look again at what an engine is doing since `sinceMs`: in a quarter of the time that it took so far. The engine
 * tells of the end by itself (`watch`); a look is for the hint that never came.
 */
export const lookAgainMs = (sinceMs: number, nowMs: number): number =>
  Math.min(longestPauseMs, Math.max(shortestPauseMs, (nowMs - sinceMs) / 4))

export const callOf = (work: Work): Call => ({ generation: work.operation.generation, signal: work.signal })
