import { setMaxListeners } from 'node:events'
import { EngineError } from '../engines/engine.ts'

/**
 * Engine work with a limit of its own: an engine that hangs costs one attempt, not the operation. Nothing is left of the
 * limit once the work is done: a signal of `AbortSignal.timeout` would be kept, with its listeners and all that they hold,
 * until its time is up, and a busy minute has tens of thousands of calls.
 */
export async function withinLimit<T>(
  until: AbortSignal,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new EngineError('unavailable', 'the engine did not answer in time'))
    limit.signal.addEventListener('abort', giveUp, { once: true })
  })
  aborted.catch(() => {})
  const end = () => limit.abort()
  const timer = setTimeout(end, ms).unref()
  // Many calls may end by the same signal.
  setMaxListeners(0, until)
  until.addEventListener('abort', end)
  if (until.aborted) end()
  try {
    return await Promise.race([work(limit.signal), aborted])
  } finally {
    clearTimeout(timer)
    until.removeEventListener('abort', end)
  }
}
