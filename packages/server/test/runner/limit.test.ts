import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { eventually } from '@slipway/testing/eventually.ts'
import { expect, test } from 'vitest'
import { withinLimit } from '../../src/runner/limit.ts'

const minute = 60_000
const neverAborted = new AbortController().signal
const hangs = () => new Promise<never>(() => {})
const late = { kind: 'unavailable', message: 'the engine did not respond in time' }

test('what an engine answers in time is what the caller gets', async () => {
  expect(await withinLimit(neverAborted, minute, async () => 'running')).toBe('running')
  const refused = withinLimit(neverAborted, minute, () => Promise.reject(new Error('no')))
  await expect(refused).rejects.toThrow('no')
})

test('an engine that hangs is given up when its time is over, and told so', async () => {
  let told: AbortSignal | undefined
  const call = withinLimit(neverAborted, 1, (signal) => {
    told = signal
    return hangs()
  })
  await expect(call).rejects.toMatchObject(late)
  expect(told?.aborted).toBe(true)
})

test('an engine that hangs is given up when its caller is, before or after the call', async () => {
  const caller = new AbortController()
  const call = withinLimit(caller.signal, minute, hangs)
  caller.abort()
  await expect(call).rejects.toMatchObject(late)
  await expect(withinLimit(caller.signal, minute, hangs)).rejects.toMatchObject(late)
})

test('a call that was answered leaves nothing in memory until its limit', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const caller = new AbortController()
  let signal: WeakRef<AbortSignal> | undefined
  await withinLimit(caller.signal, minute, async (given) => {
    given.addEventListener('abort', () => {})
    signal = new WeakRef(given)
  })
  await eventually(() => {
    collect()
    return signal!.deref() === undefined
  })
  expect(caller.signal.aborted).toBe(false)
})
