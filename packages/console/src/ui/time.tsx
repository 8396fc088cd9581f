import { useNow } from '../lib/clock.ts'
import { duration, localDate, preciseDuration, utcDate } from '../lib/format.ts'

/** Shows the local time, and UTC on hover. */
export function When({
  iso,
  empty = '–',
  hasSeconds = false,
}: {
  iso: string
  empty?: string
  hasSeconds?: boolean
}) {
  if (!iso) return <span className="text-ink-muted">{empty}</span>
  return (
    <time dateTime={iso} title={utcDate(iso)} className="figures whitespace-nowrap">
      {localDate(iso, hasSeconds ? 'seconds' : 'minutes')}
    </time>
  )
}

/** Shows how old something is, with local time and UTC on hover. */
export function Age({ iso }: { iso: string }) {
  const now = useNow()
  if (!iso) return <span className="text-ink-muted">–</span>
  return (
    <time dateTime={iso} title={`${localDate(iso)} · ${utcDate(iso)}`} className="figures whitespace-nowrap">
      {duration(now - Date.parse(iso))}
    </time>
  )
}

/** Shows a moment by how long ago it was. */
export function Ago({ iso }: { iso: string }) {
  return (
    <span className="whitespace-nowrap">
      <Age iso={iso} />
      {iso && ' ago'}
    </span>
  )
}

/** Shows how long it is until then, with local time and UTC on hover. */
export function Until({ iso }: { iso: string }) {
  const now = useNow()
  const leftMs = Date.parse(iso) - now
  return (
    <time dateTime={iso} title={`${localDate(iso)} · ${utcDate(iso)}`} className="figures whitespace-nowrap">
      {leftMs > 0 ? `in ${duration(leftMs)}` : 'now'}
    </time>
  )
}

/** Shows the time from one moment to another, or up to now. */
export function Lasted({ from, to }: { from: string; to: string }) {
  const now = useNow()
  if (!from) return null
  const endMs = to ? Date.parse(to) : Math.max(now, Date.parse(from))
  return <span className="figures text-ink-muted">{preciseDuration(endMs - Date.parse(from))}</span>
}
