import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  chooseTarget,
  estimate,
  type LaneHost,
  type LaneState,
  remainingMs,
  type Waiting,
} from '../../src/domain/capacity-estimate.ts'

const hour = 3_600_000
const host = (id: string, free: number, ...ends: (number | null)[]): LaneHost => ({
  id,
  free,
  vms: ends.map((endsAt) => ({ gpus: 1, endsAt, since: 0 })),
})
const request = (id: string, gpus = 1, more: Partial<Waiting> = {}): Waiting => ({
  id,
  gpus,
  hostId: null,
  since: 0,
  ttlMs: null,
  ...more,
})
const estimates = (state: Partial<LaneState>) =>
  estimate({ now: 0, hosts: [], waiting: [], livesMs: [], accumulateAfterMs: hour, ...state })

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

test('a VM of the queue ends too, if it has a time to live', () => {
  const waiting = [request('first', 1, { ttlMs: hour }), request('second')]
  expect(estimates({ hosts: [host('a', 0, hour)], waiting }).get('second')).toMatchObject({
    latestAt: 2 * hour,
  })
})

test('there is no estimate from fewer than 30 VMs', () => {
  const state = { hosts: [host('a', 0, null)], waiting: [request('only')] }
  const none = { earliestAt: null, likelyAt: null, latestAt: null, basis: 'none' }
  expect(estimates({ ...state, livesMs: Array(29).fill(hour) }).get('only')).toEqual(none)
  expect(estimates({ ...state, livesMs: Array(30).fill(hour) }).get('only')).toMatchObject({
    likelyAt: hour,
    basis: 'history',
  })
})

test('a smaller request passes a larger one, until the larger one has waited long enough', () => {
  const waiting = [request('large', 2), request('small')]
  const hosts = [host('a', 0, hour / 2, 3 * hour)]
  // The first GPU is free before the large request accumulates: the small one takes it for good.
  const passed = estimates({ hosts, waiting })
  expect(passed.get('small')).toMatchObject({ latestAt: hour / 2 })
  expect(passed.get('large')).toMatchObject({ basis: 'none' })
  // Now it is held for the large one.
  const guarded = estimates({ hosts: [host('a', 0, 2 * hour, 3 * hour)], waiting })
  expect(guarded.get('large')).toMatchObject({ latestAt: 3 * hour })
  expect(guarded.get('small')).toMatchObject({ basis: 'none' })
})

test('the target is the host that is free first by the times to live, else the one with the fewest GPUs to free', () => {
  const late = host('late', 1, 4 * hour)
  const early = host('early', 0, hour, 2 * hour)
  const unknown = host('unknown', 1, null)
  expect(chooseTarget([late, early, unknown], request('x', 2))).toBe('early')
  expect(chooseTarget([host('fuller', 0, null, null), unknown], request('x', 2))).toBe('unknown')
  expect(chooseTarget([early, late], request('x', 2, { hostId: 'late' }))).toBe('late')
  expect(chooseTarget([host('small', 1)], request('x', 2))).toBeUndefined()
})

test('what remains of a VM depends on its age', () => {
  const lives = [1, 2, 10, 20].map((hours) => hours * hour)
  expect(remainingMs(lives, 0, 0.5)).toBe(2 * hour)
  expect(remainingMs(lives, 5 * hour, 0.5)).toBe(5 * hour)
  expect(remainingMs(lives, 100 * hour, 0.5)).toBe(2 * hour)
})

test('estimates are in order, and no GPU is given to two requests at once', () => {
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
  const lives = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 30, maxLength: 40 })
  fc.assert(
    fc.property(hosts, waiting, lives, (hostList, waitingList, livesMs) => {
      const found = estimates({
        hosts: hostList.map(([free, vms], index) => host(`h${index}`, free, ...vms)),
        waiting: waitingList.map(({ gpus, ttlMs }, index) => request(`r${index}`, gpus, { ttlMs })),
        livesMs: livesMs.sort((a, b) => a - b),
        accumulateAfterMs: 10,
      })
      expect(found.size).toBe(waitingList.length)
      for (const { earliestAt, likelyAt, latestAt, basis } of found.values()) {
        if (basis === 'none') continue
        expect(earliestAt).toBeLessThanOrEqual(likelyAt!)
        expect(likelyAt).toBeLessThanOrEqual(latestAt!)
      }
      // What is free now suffices for all that are granted now.
      const now = waitingList.filter((_, index) => found.get(`r${index}`)!.earliestAt === 0)
      const freeNow = hostList.reduce(
        (sum, [free, vms]) => sum + free + vms.filter((at) => at === 0).length,
        0,
      )
      expect(now.reduce((sum, { gpus }) => sum + gpus, 0)).toBeLessThanOrEqual(freeNow)
    }),
  )
})
