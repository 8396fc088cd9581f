import { Failure } from '../domain/failure.ts'
import type { Call, Engine } from '../engines/engine.ts'
import type { Work } from '../runner/operation.ts'
import type { Services } from '../services.ts'

export function engineAt(services: Pick<Services, 'engines'>, location: string): Engine {
  const engine = services.engines.get(location)
  if (!engine) throw new Failure('unavailable', `The location ${location} has no engine here.`)
  return engine
}

export const callOf = (work: Work): Call => ({ generation: work.operation.generation, signal: work.signal })
