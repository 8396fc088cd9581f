import type { UsageItem } from '@slipway/sdk'
import { daysText, monthText } from '../../lib/months.ts'
import type { UnitemizedDays } from './stack.ts'

/** The grouping of the chart and the table. A label grouping contains the label's key. */
export type Grouping = 'product' | 'project' | 'vm' | `label:${string}`

export const readGrouping = (text = '', isOrgWide = false): Grouping => {
  if (text === 'vm' || /^label:./.test(text)) return text as Grouping
  return text === 'project' && isOrgWide ? 'project' : 'product'
}

/** Returns the `group_by` parameter; undefined for the default, by product. */
export const groupBy = (grouping: Grouping): string | undefined =>
  grouping === 'vm' ? 'resource' : grouping.startsWith('label:') ? grouping : undefined

export const groupingText = (grouping: Grouping): string =>
  grouping === 'vm' ? 'VM' : grouping.startsWith('label:') ? `label ${grouping.slice(6)}` : grouping

export const groupOf = (
  item: UsageItem,
  grouping: Grouping,
  projectNames: ReadonlyMap<string, string>,
): string => {
  if (grouping === 'product') return item.product_name
  if (grouping === 'project') return projectNames.get(item.project_id) ?? item.project_id
  if (grouping === 'vm') return item.resource_name || 'no VM recorded'
  return item.label_value || `no ${groupingText(grouping)}`
}

/** A row of the table: a group, or a sum below the groups. */
export interface UsageRow {
  key: string
  usd: number
  /** The cost on the same days of the previous month; null if there is no comparison. */
  usdBefore: number | null
  quantity?: number
  unit?: UsageItem['unit']
}
export type GroupTotal = Required<UsageRow> & { usdBefore: number }

/** Returns the cost of each group and its cost in the previous month, most expensive group first. */
export function totalsOf(
  items: UsageItem[],
  before: UsageItem[],
  keyOf: (item: UsageItem) => string,
): GroupTotal[] {
  const totals = new Map<string, GroupTotal>()
  const at = (item: UsageItem) => {
    const key = keyOf(item)
    const known = totals.get(key) ?? { key, quantity: 0, unit: item.unit, usd: 0, usdBefore: 0 }
    totals.set(key, known)
    return known
  }
  for (const item of items) {
    const total = at(item)
    total.quantity += item.quantity
    total.usd += item.usd ?? 0
  }
  for (const item of before) at(item).usdBefore += item.usd ?? 0
  return [...totals.values()].sort((a, b) => b.usd - a.usd || b.usdBefore - a.usdBefore)
}

export const sumUsd = (items: UsageItem[]): number =>
  items.reduce((total, item) => total + (item.usd ?? 0), 0)

/** Returns the sums of the days that are not itemized, with their titles. */
export function unitemizedSums(month: string, unitemized: UnitemizedDays): { text: string; usd: number }[] {
  const { itemizedDays, laterUsd, today, todayUsd } = unitemized
  const hasLaterDays = laterUsd >= 0.005 && itemizedDays < today - 1
  return [
    ...(hasLaterDays ? [{ text: daysText(month, itemizedDays + 1, today - 1), usd: laterUsd }] : []),
    { text: 'Today so far', usd: todayUsd },
  ]
}

interface Sums {
  month: string
  usd: number
  usdBefore: number
  unitemized: UnitemizedDays | null
}

/** Returns the sums below the groups. The last one equals the amount at the top of the page. */
export function sumsOf({ month, usd, usdBefore, unitemized }: Sums): UsageRow[] {
  if (!unitemized) return [{ key: 'Total', usd, usdBefore }]
  const rest = unitemizedSums(month, unitemized).map(({ text, usd }) => ({
    key: `${text}, not yet itemized`,
    usd,
    usdBefore: null,
  }))
  const all = rest.reduce((sum, each) => sum + each.usd, usd)
  return [
    ...(unitemized.itemizedDays > 0
      ? [{ key: daysText(month, 1, unitemized.itemizedDays), usd, usdBefore }]
      : []),
    ...rest,
    { key: `${monthText(month)} so far`, usd: all, usdBefore: null },
  ]
}

/** More colors would be hard to distinguish, so the remaining groups share one bar. */
const maxBars = 7
export const others = 'others'

/** Returns a grouping that combines all but the most expensive groups. */
export function withOthers(
  items: UsageItem[],
  keyOf: (item: UsageItem) => string,
): (item: UsageItem) => string {
  const totals = totalsOf(items, [], keyOf)
  if (totals.length <= maxBars + 1) return keyOf
  const kept = new Set(totals.slice(0, maxBars).map(({ key }) => key))
  return (item) => (kept.has(keyOf(item)) ? keyOf(item) : others)
}
