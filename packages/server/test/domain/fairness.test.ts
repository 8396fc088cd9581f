import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fairShare } from '../../src/domain/fair-share.ts'

const holders = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 40 })
const places = fc.integer({ min: 1, max: 40 })
const share = (count: number) => Math.max(1, Math.floor(count * 0.75))

/** What may be held: at most all slots, and no project above its share. */
const lawful = (held: string[], count: number) =>
  held.length <= count && held.every((one) => held.filter((each) => each === one).length <= share(count))

test('the fair share keeps everybody within it, whoever takes all that is offered', () => {
  fc.assert(
    fc.property(holders, places, fc.constantFrom('a', 'b', 'new'), (held, count, taker) => {
      fc.pre(lawful(held, count))
      const { most, saturated } = fairShare(held, count)
      if (saturated.includes(taker) || most <= 0) return
      expect(lawful([...held, ...Array<string>(most).fill(taker)], count)).toBe(true)
    }),
  )
})

test('the fair share offers something to a newcomer as long as a place is free', () => {
  fc.assert(
    fc.property(holders, places, (held, count) => {
      fc.pre(lawful(held, count) && held.length < count)
      expect(fairShare(held, count).most).toBeGreaterThan(0)
    }),
  )
})

test('the fair share leaves a place to others beside one with a long queue', () => {
  expect(fairShare(Array<string>(24).fill('greedy'), 32)).toEqual({ most: 8, saturated: ['greedy'] })
})
