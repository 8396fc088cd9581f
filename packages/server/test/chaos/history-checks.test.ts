import { expect, test } from 'vitest'
import { checkExchanges, checkGpus, checkStream, type Exchange, integrate } from './history-checks.ts'

const exchange = (startedMs: number, more: Partial<Exchange>): Exchange => ({
  startedMs,
  endedMs: startedMs + 10,
  key: '',
  status: 200,
  isFinal: true,
  ...more,
})
const accepted = exchange(0, { key: 'k-1', operationId: 'o-1', state: 'IN_PROGRESS' })
const ended = exchange(20, { operationId: 'o-1', state: 'SUCCEEDED' })
const operation = { id: 'o-1', key: 'k-1', state: 'SUCCEEDED' }

test('a history in which every promise was kept has no violations', () => {
  const lost = exchange(0, { key: 'k-1', status: 0, isFinal: false })
  const refused = exchange(0, { key: 'k-2', status: 409 })
  expect(checkExchanges([lost, accepted, accepted, ended, refused], [operation])).toEqual([])
})

test.each([
  ['an accepted operation that is unfinished', [accepted], [{ ...operation, state: 'IN_PROGRESS' }]],
  ['an accepted operation that does not exist', [accepted], []],
  [
    'a key with two operations',
    [accepted, { ...accepted, operationId: 'o-2' }],
    [operation, { ...operation, id: 'o-2' }],
  ],
  ['a refused request that started an operation', [exchange(0, { key: 'k-1', status: 409 })], [operation]],
  [
    'an end that was shown and then withdrawn',
    [ended, exchange(40, { operationId: 'o-1', state: 'IN_PROGRESS' })],
    [operation],
  ],
  ['an end that differs from the final one', [ended], [{ ...operation, state: 'FAILED' }]],
])('%s is a violation', (_, exchanges, operations) => {
  expect(checkExchanges(exchanges, operations)).toHaveLength(1)
})

test('a request that was sent before the end was shown may still show progress', () => {
  const early = exchange(15, { operationId: 'o-1', state: 'IN_PROGRESS', endedMs: 60 })
  expect(checkExchanges([ended, early], [operation])).toEqual([])
})

test('a GPU with two VMs at the same time is a violation', () => {
  const one = { gpu: 'host-1 0', vmId: 'vm-1' }
  expect(checkGpus([one, { gpu: 'host-1 1', vmId: 'vm-2' }])).toEqual([])
  expect(checkGpus([one, { ...one, vmId: 'vm-2' }])).toEqual(['GPU host-1 0 is held by vm-1 and vm-2'])
})

test.each([
  ['a gap', ['a', 'c'], /lacks 1 events: b/],
  ['a duplicate', ['a', 'b', 'b', 'c'], /1 events twice/],
  ['a wrong order', ['a', 'c', 'b'], /out of order at 1/],
])('%s in a stream is a violation', (_, streamed, violation) => {
  expect(checkStream(['a', 'b', 'c'], streamed)).toEqual([expect.stringMatching(violation)])
  expect(checkStream(['a', 'b', 'c'], ['a', 'b', 'c'])).toEqual([])
})

test('the integral of meters counts usage within the month, and open meters until now', () => {
  const hour = 3_600_000
  const meters = [
    { product: 'a100.1x', quantity: 1, fromMs: -hour, toMs: hour },
    { product: 'a100.1x', quantity: 1, fromMs: 2 * hour, toMs: null },
    { product: 'persistent-ssd', quantity: 10, fromMs: 0, toMs: hour },
  ]
  const prices = new Map([
    ['a100.1x', 2],
    ['persistent-ssd', 0.5],
  ])
  expect(integrate(meters, prices, { startMs: 0, nowMs: 3 * hour })).toEqual(
    new Map([
      ['a100.1x', 4],
      ['persistent-ssd', 5],
    ]),
  )
})
