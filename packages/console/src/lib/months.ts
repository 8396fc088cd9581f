/** Months are in UTC, like the days in usage records. */
export const monthNow = () => new Date().toISOString().slice(0, 7)

export function lastMonths(number: number): string[] {
  const now = new Date()
  return Array.from({ length: number }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  )
}

/** Returns the previous month, such as "2026-10" for "2026-11". */
export const monthBefore = (month: string): string => {
  const [year, number] = month.split('-').map(Number)
  return new Date(Date.UTC(year!, number! - 2, 1)).toISOString().slice(0, 7)
}

export const monthAfter = (month: string): string => {
  const [year, number] = month.split('-').map(Number)
  return new Date(Date.UTC(year!, number!, 1)).toISOString().slice(0, 7)
}

export const daysIn = (month: string): number => {
  const [year, number] = month.split('-').map(Number)
  return new Date(Date.UTC(year!, number!, 0)).getUTCDate()
}

const months = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric', timeZone: 'UTC' })
const dates = new Intl.DateTimeFormat(undefined, { dateStyle: 'long', timeZone: 'UTC' })
const firstDayOf = (month: string) => new Date(`${month}-01T00:00:00Z`)

/** Returns, for example, "November 2026". */
export const monthText = (month: string): string => months.format(firstDayOf(month))

/** Returns a range of days as text: "November 13 – 15, 2026", or "November 2026" for the whole month. */
export const daysText = (month: string, first: number, last: number): string => {
  if (first === 1 && last >= daysIn(month)) return monthText(month)
  const day = (number: number) => firstDayOf(month).setUTCDate(number)
  return dates.formatRange(day(first), day(last))
}
