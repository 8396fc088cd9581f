import fc from 'fast-check'
import { expect, test } from 'vitest'
import { estimate, remainingMs } from '../../src/domain/capacity/estimate.ts'
import {
  chooseTarget,
  type QueueHost,
  type QueueState,
  type WaitingRequest,
} from '../../src/domain/capacity/queue.ts'

const hour = 3_600_000
const host = (id: string, free: number, ...ends: (number | null)[]): QueueHost => ({
  id,
  free,
  vms: ends.map((endsAt) => ({ gpus: 1, endsAt, since: 0, reservedUntil: null })),
})
const request = (id: string, gpus = 1, more: Partial<WaitingRequest> = {}): WaitingRequest => ({
  id,
  gpus,
  vms: 1,
  isSpread: false,
  hostId: null,
  since: 0,
  ttlMs: null,
  ...more,
})
const estimates = (state: Partial<QueueState>) =>
  estimate({ now: 0, hosts: [], waiting: [], runtimesMs: [], accumulateAfterMs: hour, ...state })

test('requests get the GPUs of VMs with a time to live, in order', () => {
  const hosts = [host('a', 0, 2 * hour, 5 * hour)]
  const found = estimates({ hosts, waiting: [request('first'), request('second')] })
  expect(found.get('first')).toEqual({
    earliestAt: 2 * hour,
    likelyAt: 2 * hour,
    latestAt: 2 * hour,
    basis: 'expiries',
  })
  expect(found.get('second')).toMatchObject({ latestAt: 5 * hour })
})

test('a VM created for a waiting request also ends, if it has a time to live', () => {
  const waiting = [request('first', 1, { ttlMs: hour }), request('second')]
  expect(estimates({ hosts: [host('a', 0, hour)], waiting }).get('second')).toMatchObject({
    latestAt: 2 * hour,
  })
})

test('there is no estimate if the runtimes of fewer than 30 VMs are known', () => {
  const state = { hosts: [host('a', 0, null)], waiting: [request('only')] }
  const none = { earliestAt: null, likelyAt: null, latestAt: null, basis: 'none' }
  expect(estimates({ ...state, runtimesMs: Array(29).fill(hour) }).get('only')).toEqual(none)
  expect(estimates({ ...state, runtimesMs: Array(30).fill(hour) }).get('only')).toMatchObject({
    likelyAt: hour,
    basis: 'history',
  })
})

test('a smaller request overtakes a larger one, until the larger one has waited long enough', () => {
  const waiting = [request('large', 2), request('small')]
  const hosts = [host('a', 0, hour / 2, 3 * hour)]
  // The first GPU becomes free before the large request accumulates GPUs, so the small request gets it
  // permanently.
  const passed = estimates({ hosts, waiting })
  expect(passed.get('small')).toMatchObject({ latestAt: hour / 2 })
  expect(passed.get('large')).toMatchObject({ basis: 'none' })
  // Here the first GPU is held for the large request.
  const guarded = estimates({ hosts: [host('a', 0, 2 * hour, 3 * hour)], waiting })
  expect(guarded.get('large')).toMatchObject({ latestAt: 3 * hour })
  expect(guarded.get('small')).toMatchObject({ basis: 'none' })
})

test('the target of a request is the host that becomes free first according to TTLs, otherwise the host with the fewest GPUs left to free', () => {
  const late = host('late', 1, 4 * hour)
  const early = host('early', 0, hour, 2 * hour)
  const unknown = host('unknown', 1, null)
  expect(chooseTarget([late, early, unknown], request('x', 2))).toBe('early')
  expect(chooseTarget([host('fuller', 0, null, null), unknown], request('x', 2))).toBe('unknown')
  expect(chooseTarget([early, late], request('x', 2, { hostId: 'late' }))).toBe('late')
  expect(chooseTarget([host('small', 1)], request('x', 2))).toBeUndefined()
})

test('the estimated remaining runtime of a VM depends on its age', () => {
  const runtimes = [1, 2, 10, 20].map((hours) => hours * hour)
  expect(remainingMs(runtimes, 0, 0.5)).toBe(2 * hour)
  expect(remainingMs(runtimes, 5 * hour, 0.5)).toBe(5 * hour)
  expect(remainingMs(runtimes, 100 * hour, 0.5)).toBe(2 * hour)
})

test('estimates are in order, and no GPU is given to two requests at the same time', () => {
  const ends = fc.option(fc.integer({ min: 0, max: 100 }), { nil: null })
  const hosts = fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.array(ends, { maxLength: 4 })), {
    minLength: 1,
    maxLength: 4,
  })
  const waiting = fc.array(
    fc.record({
      gpus: fc.integer({ min: 1, max: 4 }),
      ttlMs: fc.option(fc.integer({ min: 1, max: 50 }), { nil: null }),
    }),
    { maxLength: 12 },
  )
  const runtimes = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 30, maxLength: 40 })
  fc.assert(
    fc.property(hosts, waiting, runtimes, (hostList, waitingList, runtimesMs) => {
      const found = estimates({
        hosts: hostList.map(([free, vms], index) => host(`h${index}`, free, ...vms)),
        waiting: waitingList.map(({ gpus, ttlMs }, index) => request(`r${index}`, gpus, { ttlMs })),
        runtimesMs: runtimesMs.sort((a, b) => a - b),
        accumulateAfterMs: 10,
      })
      expect(found.size).toBe(waitingList.length)
      for (const { earliestAt, likelyAt, latestAt, basis } of found.values()) {
        if (basis === 'none') continue
        expect(earliestAt).toBeLessThanOrEqual(likelyAt!)
        expect(likelyAt).toBeLessThanOrEqual(latestAt!)
      }
      // Enough GPUs are free now for all requests that are granted now.
      const now = waitingList.filter((_, index) => found.get(`r${index}`)!.earliestAt === 0)
      const freeNow = hostList.reduce(
        (sum, [free, vms]) => sum + free + vms.filter((at) => at === 0).length,
        0,
      )
      expect(now.reduce((sum, { gpus }) => sum + gpus, 0)).toBeLessThanOrEqual(freeNow)
    }),
  )
})

test('a group gets all its GPUs at the same time, each member on one host', () => {
  const hosts = [host('a', 1, 2 * hour, 4 * hour), host('b', 1, 3 * hour)]
  const whenGranted = (more: Partial<WaitingRequest>) =>
    estimates({ hosts, waiting: [request('group', 1, more)] }).get('group')
  expect(whenGranted({ vms: 2 })).toMatchObject({ latestAt: 0 })
  expect(whenGranted({ vms: 4 })).toMatchObject({ latestAt: 3 * hour })
  expect(whenGranted({ gpus: 2, vms: 2 })).toMatchObject({ latestAt: 3 * hour })
  expect(whenGranted({ vms: 2, isSpread: true })).toMatchObject({ latestAt: 0 })
  expect(whenGranted({ vms: 3, isSpread: true })).toMatchObject({ basis: 'none' })
})

test('a group accumulates no GPUs: smaller requests overtake it, and the first request behind it has a target', () => {
  const hosts = [host('a', 0, 2 * hour, 3 * hour), host('b', 0, 5 * hour)]
  const waiting = [request('group', 1, { vms: 3 }), request('whole host', 2), request('small')]
  const found = estimates({ hosts, waiting })
  expect(found.get('whole host')).toMatchObject({ latestAt: 3 * hour })
  expect(found.get('small')).toMatchObject({ latestAt: 5 * hour })
  expect(found.get('group')).toMatchObject({ basis: 'none' })
})

test('a GPU of a reservation is free when both the reservation and its VM have ended', () => {
  const reserved = (endsAt: number | null, reservedUntil: number): QueueHost => ({
    ...host('a', 0),
    vms: [{ gpus: 1, endsAt, since: 0, reservedUntil }],
  })
  const runtimesMs = Array(30).fill(hour)
  const whenGranted = (queue: QueueHost) =>
    estimates({ hosts: [queue], waiting: [request('x')], runtimesMs }).get('x')
  expect(whenGranted(reserved(2 * hour, 2 * hour))).toMatchObject({ latestAt: 2 * hour, basis: 'expiries' })
  expect(whenGranted(reserved(null, 5 * hour))).toMatchObject({ likelyAt: 5 * hour, basis: 'history' })
  expect(whenGranted(reserved(null, hour / 2))).toMatchObject({ likelyAt: hour, basis: 'history' })
})

test('hypothetical requests delay neither the other requests nor each other', () => {
  const hypothetical = (gpus: number) => request(`new ${gpus}`, gpus, { isHypothetical: true })
  const waiting = [request('large', 2), hypothetical(1), hypothetical(3), hypothetical(2)]
  const hosts = [host('a', 0, hour / 2, 3 * hour, 4 * hour, 5 * hour, 6 * hour)]
  const found = estimates({ hosts, waiting })
  expect(found.get('large')).toMatchObject({ latestAt: 3 * hour })
  expect(found.get('new 1')).toMatchObject({ latestAt: hour / 2 })
  expect(found.get('new 2')).toMatchObject({ latestAt: 5 * hour })
  expect(found.get('new 3')).toMatchObject({ latestAt: 6 * hour })
})
