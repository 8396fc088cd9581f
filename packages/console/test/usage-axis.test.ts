import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ticksFor } from '../src/lib/axis.ts'
import { forecastBars } from '../src/pages/usage/stack.ts'

test('the axis of the usage chart ends at most one step above the tallest bar', () => {
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

test('the axis of a month without costs ends at 1', () => {
  expect(ticksFor(0)).toEqual([0, 1])
})

test('the forecast of today is its cost so far and its part of the rest, and all days add up to the forecast', () => {
  // Six days, of which the first two are itemized; a quarter of the fourth day is left.
  const unitemized = { itemizedDays: 2, laterUsd: 5, today: 4, todayUsd: 9, todayLeft: 0.25 }
  const bars = forecastBars([10, 10, 0, 0, 0, 0], unitemized, 79)
  expect(bars).toEqual([null, null, null, 14, 20, 20])
  expect(10 + 10 + 5 + 14 + 20 + 20).toBe(79)
})
