import type { GpuFaultDay } from '@slipway/sdk'

const dayMs = 86_400_000

/** Returns the given number of UTC dates, the last of which contains `lastMs`. */
export const datesUntil = (lastMs: number, days: number): string[] =>
  Array.from({ length: days }, (_, index) =>
    new Date(lastMs - (days - 1 - index) * dayMs).toISOString().slice(0, 10),
  )

const dayText = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' })
/** Formats a UTC date without its year, such as "Nov 19". */
export const shortDate = (date: string): string => dayText.format(new Date(date))

/** A group's totals over all days. */
export interface FaultTotal {
  key: string
  name: string
  hostId: string
  location: string
  hostFaults: number
  guestFaults: number
  otherErrors: number
  /** The last day with a fault or an error. */
  lastDate: string
}

const faultsOf = ({ hostFaults, guestFaults }: FaultTotal) => hostFaults + guestFaults
const others = 'others'
/** Hosts in different locations can have the same name. */
const keyOf = ({ host_id, group }: GpuFaultDay) => host_id || group

/** Returns the totals of each group, most faults first. */
export function totalsOf(items: GpuFaultDay[]): FaultTotal[] {
  const totals = new Map<string, FaultTotal>()
  for (const item of items) {
    const { date, group, host_id, location } = item
    const key = keyOf(item)
    const total = totals.get(key) ?? {
      ...{ key, name: group || others, hostId: host_id, location, lastDate: date },
      ...{ hostFaults: 0, guestFaults: 0, otherErrors: 0 },
    }
    total.hostFaults += item.host_faults
    total.guestFaults += item.guest_faults
    total.otherErrors += item.other_errors
    total.lastDate = date
    totals.set(key, total)
  }
  return [...totals.values()].toSorted(
    (one, other) => faultsOf(other) - faultsOf(one) || other.otherErrors - one.otherErrors,
  )
}

/** More colors would be hard to distinguish, so the remaining groups share the last color. */
const maxColors = 8

export interface FaultBars {
  groups: { key: string; name: string }[]
  /** The cumulative height of each group by day. */
  stacks: number[][]
  /** The number of faults on each day. */
  totals: number[]
}

/** Stacks the faults of each day. Errors unrelated to hardware are not shown. */
export function stackFaults(items: GpuFaultDay[], dates: string[]): FaultBars {
  const ranked = totalsOf(items).filter((total) => faultsOf(total) > 0)
  const groups = ranked.slice(0, maxColors).map(({ key, name }) => ({ key, name }))
  if (ranked.length > maxColors) groups[maxColors - 1] = { key: others, name: others }
  const indexOf = new Map(ranked.map(({ key }, index) => [key, Math.min(index, maxColors - 1)]))
  const counts = groups.map(() => dates.map(() => 0))
  for (const item of items) {
    const values = counts[indexOf.get(keyOf(item)) ?? -1]
    const day = dates.indexOf(item.date)
    if (values && day >= 0) values[day]! += item.host_faults + item.guest_faults
  }
  const totals = dates.map(() => 0)
  const stacks = counts.map((values) => values.map((value, day) => (totals[day]! += value)))
  return { groups, stacks, totals }
}
