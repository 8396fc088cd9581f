import { EngineError } from '../engines/engine.ts'

/** Engine work with a limit of its own: an engine that hangs costs one attempt, not the operation. */
export async function withinLimit<T>(
  until: AbortSignal,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.any([until, AbortSignal.timeout(ms)])
  const aborted = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new EngineError('unavailable', 'the engine did not answer in time'))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
  })
  aborted.catch(() => {})
  return Promise.race([work(signal), aborted])
}
