import { createHash } from 'node:crypto'

/**
 * Days and months are text such as `2026-11-14` and `2026-11-01`, in UTC, regardless of the host's time zone.
 */

const parse = (day: string) => Date.parse(`${day}T00:00:00Z`)
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const msPerDay = 86_400_000

export const addDays = (day: string, days: number): string => dayOf(parse(day) + days * msPerDay)

export const daysBetween = (from: string, to: string): number => (parse(to) - parse(from)) / msPerDay

export const monthOf = (day: string): string => `${day.slice(0, 7)}-01`

export function addMonths(month: string, months: number): string {
  const start = new Date(parse(month))
  return dayOf(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + months, 1))
}

export const isLastOfMonth = (day: string): boolean => addDays(day, 1).endsWith('-01')

export const dayStart = (day: string): string => `${day}T00:00:00.000Z`

const monthFormat = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' })

/** Formats `2026-11-01` as `November 2026`. */
export const monthTitle = (month: string): string => monthFormat.format(parse(month))

/**
 * Returns the id of an organization's invoice for a month, so that the current invoice already has its final
 * id. It is a version 7 UUID with the month's start as its time and a digest as its random part.
 */
export function invoiceId(organizationId: string, month: string): string {
  const time = parse(month).toString(16).padStart(12, '0')
  const digest = createHash('sha256').update(`invoice ${organizationId} ${month}`).digest('hex')
  const variant = ((Number.parseInt(digest.slice(3, 4), 16) & 0x3) | 0x8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}`
}
