import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { eventually } from '@slipway/testing/eventually.ts'
import { expect, test } from 'vitest'
import { withinLimit } from '../../src/runner/limit.ts'

const minute = 60_000
const neverAborted = new AbortController().signal
const hangs = () => new Promise<never>(() => {})
const late = { kind: 'unavailable', message: 'the engine did not respond in time' }

test('the caller gets the result of an engine call that finishes in time', async () => {
  expect(await withinLimit(neverAborted, minute, async () => 'running')).toBe('running')
  const refused = withinLimit(neverAborted, minute, () => Promise.reject(new Error('no')))
  await expect(refused).rejects.toThrow('no')
})

test('an engine call that hangs is aborted at its time limit', async () => {
  let passed: AbortSignal | undefined
  const call = withinLimit(neverAborted, 1, (signal) => {
    passed = signal
    return hangs()
  })
  await expect(call).rejects.toMatchObject(late)
  expect(passed?.aborted).toBe(true)
})

test('an engine call that hangs is aborted when its caller is aborted, even if that was before the call', async () => {
  const caller = new AbortController()
  const call = withinLimit(caller.signal, minute, hangs)
  caller.abort()
  await expect(call).rejects.toMatchObject(late)
  await expect(withinLimit(caller.signal, minute, hangs)).rejects.toMatchObject(late)
})

test('a finished call is released from memory before its time limit', async () => {
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
