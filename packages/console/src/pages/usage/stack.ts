import type { UsageItem } from '@slipway/sdk'

/** Returns for each group the cumulated height of its part of the stack, day by day. */
export function stackByDay(items: UsageItem[], groupOf: (item: UsageItem) => string, days: number) {
  const groups = [...new Set(items.map(groupOf))].sort()
  const totals = new Array<number>(days).fill(0)
  const stacks = groups.map((group) => {
    for (const item of items) {
      if (groupOf(item) === group) totals[Number(item.date.slice(8, 10)) - 1]! += item.usd ?? 0
    }
    return [...totals]
  })
  return { groups, stacks, totals }
}

/** The part of the current month that is not itemized yet: a day is itemized when it is over. */
export interface OpenDays {
  /** The number of days from the first that are itemized. */
  splitDays: number
  /** What the days after them have cost together, up to yesterday. */
  laterUsd: number
  /** Today, as a day of the month, and what it has cost so far. */
  today: number
  todayUsd: number
}

/** Returns a bar for each day that is not split yet; days before today share evenly what they cost together. */
export const openBars = (days: number, open: OpenDays | null): (number | null)[] =>
  Array.from({ length: days }, (_, index) => {
    const day = index + 1
    if (!open || day <= open.splitDays || day > open.today) return null
    return day === open.today ? open.todayUsd : open.laterUsd / (open.today - 1 - open.splitDays)
  })

/** Returns what is left of the forecast, spread evenly over today and the days to come. */
export function forecastBars(
  totals: number[],
  open: OpenDays | null,
  forecastUsd: number | null,
): (number | null)[] {
  if (forecastUsd === null || !open) return totals.map(() => null)
  const { today, laterUsd } = open
  const spent = totals.slice(0, today - 1).reduce((sum, value) => sum + value, laterUsd)
  const left = Math.max(0, forecastUsd - spent) / (totals.length - today + 1)
  return totals.map((_, index) => (index + 1 >= today ? left : null))
}

/** A budget that is far above what is spent would make bars too small to see: then it has no line. */
const tallestLine = 4

/** Returns a day's share of the month's budget, if it can be drawn beside the bars. */
export function budgetLine(budgetUsd: number | null, days: number, bars: (number | null)[]): number | null {
  if (budgetUsd === null) return null
  const share = budgetUsd / days
  return share <= tallestLine * Math.max(...bars.map((bar) => bar ?? 0)) ? share : null
}

/** There are no more steps than these on the axis. */
const mostSteps = 5

/** Returns the ticks of an axis that holds the tallest bar: it begins at 0 and ends at a tick. */
export function ticksFor(tallest: number): number[] {
  if (!(tallest > 0)) return [0, 1]
  const power = 10 ** Math.floor(Math.log10(tallest / mostSteps))
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each * mostSteps >= tallest)!
  return Array.from({ length: Math.ceil(tallest / step) + 1 }, (_, index) => index * step)
}
