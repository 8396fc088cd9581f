import { setMaxListeners } from 'node:events'
import { EngineError } from '../engines/engine.ts'

/**
 * Runs engine work with a time limit, so that a hanging engine fails one attempt instead of the operation.
 * The timer is freed when the work ends. `AbortSignal.timeout` is not used, because its signal would stay in
 * memory, with its listeners, until the timeout.
 */
export async function withinLimit<T>(
  until: AbortSignal,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    const rejectWork = () => reject(new EngineError('unavailable', 'the engine did not respond in time'))
    limit.signal.addEventListener('abort', rejectWork, { once: true })
  })
  aborted.catch(() => {})
  const end = () => limit.abort()
  const timer = setTimeout(end, ms).unref()
  // Many calls listen to this signal, so Node's warning about listener leaks is disabled.
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
