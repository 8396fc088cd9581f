import type { UsageItem } from '@slipway/sdk'
import { daysWords, monthWords } from '../../lib/months.ts'
import type { OpenDays } from './stack.ts'

/** The grouping of bars and tables; for a label, its key follows a colon. */
export type Grouping = 'product' | 'project' | 'vm' | `label:${string}`

export const readGrouping = (text = '', isWhole = false): Grouping => {
  if (text === 'vm' || /^label:./.test(text)) return text as Grouping
  return text === 'project' && isWhole ? 'project' : 'product'
}

/** Returns how usage is asked for: the service adds up by product unless told otherwise. */
export const groupBy = (grouping: Grouping): string | undefined =>
  grouping === 'vm' ? 'resource' : grouping.startsWith('label:') ? grouping : undefined

export const groupingWords = (grouping: Grouping): string =>
  grouping === 'vm' ? 'VM' : grouping.startsWith('label:') ? `label ${grouping.slice(6)}` : grouping

export const groupOf = (
  item: UsageItem,
  grouping: Grouping,
  projectNames: ReadonlyMap<string, string>,
): string => {
  if (grouping === 'product') return item.product_name
  if (grouping === 'project') return projectNames.get(item.project_id) ?? item.project_id
  if (grouping === 'vm') return item.resource_name || 'not recorded by VM'
  return item.label_value || `no ${groupingWords(grouping)}`
}

/** A line of the table: a group, or a sum below the groups. */
export interface Line {
  key: string
  usd: number
  /** The value for the same number of days of the previous month; null if there is none. */
  usdBefore: number | null
  quantity?: number
  unit?: UsageItem['unit']
}
export type GroupTotal = Required<Line> & { usdBefore: number }

/** Returns what each group cost, the dearest first, beside what it cost the month before. */
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

/** Returns what is not split yet, by the names that it has in the chart and in the table. */
export function openSums(month: string, open: OpenDays): { words: string; usd: number }[] {
  const { splitDays, laterUsd, today, todayUsd } = open
  const isAnythingLater = laterUsd >= 0.005 && splitDays < today - 1
  return [
    ...(isAnythingLater ? [{ words: daysWords(month, splitDays + 1, today - 1), usd: laterUsd }] : []),
    { words: 'Today so far', usd: todayUsd },
  ]
}

interface Sums {
  month: string
  usd: number
  usdBefore: number
  open: OpenDays | null
}

/** Returns the lines below the groups, the last of which is the figure at the head of the page. */
export function sumsOf({ month, usd, usdBefore, open }: Sums): Line[] {
  if (!open) return [{ key: 'Total', usd, usdBefore }]
  const rest = openSums(month, open).map(({ words, usd }) => ({
    key: `${words}, not yet itemized`,
    usd,
    usdBefore: null,
  }))
  const all = rest.reduce((sum, each) => sum + each.usd, usd)
  return [
    ...(open.splitDays > 0 ? [{ key: daysWords(month, 1, open.splitDays), usd, usdBefore }] : []),
    ...rest,
    { key: `${monthWords(month)} so far`, usd: all, usdBefore: null },
  ]
}

/** More colours than this are not told apart: the rest is drawn as one. */
const mostBars = 7
export const others = 'others'

/** Returns the same grouping with all but the dearest groups taken together. */
export function withOthers(
  items: UsageItem[],
  keyOf: (item: UsageItem) => string,
): (item: UsageItem) => string {
  const totals = totalsOf(items, [], keyOf)
  if (totals.length <= mostBars + 1) return keyOf
  const kept = new Set(totals.slice(0, mostBars).map(({ key }) => key))
  return (item) => (kept.has(keyOf(item)) ? keyOf(item) : others)
}
