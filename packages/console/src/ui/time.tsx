import { useNow } from '../lib/clock.ts'
import { duration, localDate, preciseDuration, timeLeft, utcDate } from '../lib/format.ts'

interface TimestampProps {
  iso: string
  empty?: string
  hasSeconds?: boolean
  /** False in a column whose title has the time zone. */
  hasZone?: boolean
}

/** A time in the local time zone, with UTC on hover. */
export function Timestamp({ iso, empty = '–', hasSeconds = false, hasZone = true }: TimestampProps) {
  if (!iso) return <span className="text-ink-muted">{empty}</span>
  return (
    <time dateTime={iso} title={utcDate(iso)} className="figures whitespace-nowrap">
      {localDate(iso, hasSeconds ? 'seconds' : 'minutes', hasZone)}
    </time>
  )
}

const hoverText = (iso: string) => `${localDate(iso, 'minutes', true)} · ${utcDate(iso)}`

/** The time since a point in time, with local time and UTC on hover. */
export function Age({ iso }: { iso: string }) {
  const now = useNow()
  if (!iso) return <span className="text-ink-muted">–</span>
  return (
    <time dateTime={iso} title={hoverText(iso)} className="figures whitespace-nowrap">
      {duration(now - Date.parse(iso))}
    </time>
  )
}

/** The time since a point in time, with "ago". */
export function Ago({ iso }: { iso: string }) {
  return (
    <span className="whitespace-nowrap">
      <Age iso={iso} />
      {iso && ' ago'}
    </span>
  )
}

/** The time until a point in time, with local time and UTC on hover. */
export function Until({ iso, hasPreposition = true }: { iso: string; hasPreposition?: boolean }) {
  const now = useNow()
  const leftMs = Date.parse(iso) - now
  return (
    <time dateTime={iso} title={hoverText(iso)} className="figures whitespace-nowrap">
      {leftMs > 0 ? `${hasPreposition ? 'in ' : ''}${timeLeft(leftMs)}` : 'now'}
    </time>
  )
}

/** The time between two points in time, or until now. */
export function Elapsed({ from, to }: { from: string; to: string }) {
  const now = useNow()
  if (!from) return null
  const endMs = to ? Date.parse(to) : Math.max(now, Date.parse(from))
  return <span className="figures text-ink-muted">{preciseDuration(endMs - Date.parse(from))}</span>
}
