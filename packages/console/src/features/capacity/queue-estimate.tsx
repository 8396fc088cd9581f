import type { ApiErrorBody } from '@slipway/sdk'
import { plural } from '../../lib/format.ts'
import { Timestamp, Until } from '../../ui/time.tsx'

/** Says how many requests wait for such GPUs, and when a new one would probably be granted. */
export function QueueEstimate({ queue }: { queue: NonNullable<ApiErrorBody['queue']> }) {
  const { length, likely_at } = queue
  return (
    <span className="text-ink">
      {length === 0 ? 'No request waits' : plural(length, 'request waits', 'requests wait')} for such GPUs
      now.{' '}
      {likely_at ? (
        <>
          A new request is likely granted <Until iso={likely_at} /> (<Timestamp iso={likely_at} />
          ).
        </>
      ) : (
        'There is no estimate yet.'
      )}
    </span>
  )
}
