import type { UsageItem } from '@slipway/sdk'

/** Returns the cumulative bar heights of each group, by day. */
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

/** The days of the current month that are not itemized yet. */
export interface UnitemizedDays {
  /** The number of itemized days. */
  itemizedDays: number
  /** The total cost of the following days, up to yesterday. */
  laterUsd: number
  /** The current day of the month. */
  today: number
  /** Today's cost so far. */
  todayUsd: number
  /** The part of today that is left, from 1 at the start of the day to 0 at its end. */
  todayLeft: number
}

/** Returns a bar for each day that is not itemized; days before today share their total evenly. */
export const unitemizedBars = (days: number, unitemized: UnitemizedDays | null): (number | null)[] =>
  Array.from({ length: days }, (_, index) => {
    const day = index + 1
    if (!unitemized || day <= unitemized.itemizedDays || day > unitemized.today) return null
    return day === unitemized.today
      ? unitemized.todayUsd
      : unitemized.laterUsd / (unitemized.today - 1 - unitemized.itemizedDays)
  })

/** Spreads the rest of the forecast evenly over the time that is left of today and the following days. */
export function forecastBars(
  totals: number[],
  unitemized: UnitemizedDays | null,
  forecastUsd: number | null,
): (number | null)[] {
  if (forecastUsd === null || !unitemized) return totals.map(() => null)
  const { today, laterUsd, todayUsd, todayLeft } = unitemized
  const spent = totals.slice(0, today - 1).reduce((sum, value) => sum + value, laterUsd + todayUsd)
  const perDay =
    Math.max(0, forecastUsd - spent) / Math.max(todayLeft + totals.length - today, Number.EPSILON)
  return totals.map((_, index) => {
    const day = index + 1
    if (day < today) return null
    return day === today ? todayUsd + perDay * todayLeft : perDay
  })
}

/** The budget line is omitted if it is higher than this many times the tallest bar. */
const maxLineRatio = 4

/** Returns the daily share of the budget; null if the line is omitted. */
export function budgetLine(budgetUsd: number | null, days: number, bars: (number | null)[]): number | null {
  if (budgetUsd === null) return null
  const share = budgetUsd / days
  return share <= maxLineRatio * Math.max(...bars.map((bar) => bar ?? 0)) ? share : null
}
