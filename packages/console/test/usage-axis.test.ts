import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ticksFor } from '../src/pages/usage/stack.ts'

test('the axis of daily costs ends at a tick that no bar is above, and not far above the tallest', () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 1e9, noNaN: true }), (tallest) => {
      const ticks = ticksFor(tallest)
      const [first, step = 0] = ticks
      expect(first).toBe(0)
      expect(ticks.length).toBeLessThanOrEqual(7)
      const rounding = 1e-9 * tallest
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(tallest - rounding)
      expect(ticks.at(-1)! - tallest).toBeLessThanOrEqual(step + rounding)
    }),
  )
})

test('a month without any cost has an axis all the same', () => {
  expect(ticksFor(0)).toEqual([0, 1])
})
