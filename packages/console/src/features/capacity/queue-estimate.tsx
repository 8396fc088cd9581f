import type { ApiErrorBody } from '@slipway/sdk'
import { plural } from '../../lib/format.ts'
import { Timestamp, Until } from '../../ui/time.tsx'

/** Shows how many requests are waiting for these GPUs, and when a new request would probably be granted. */
export function QueueEstimate({ queue }: { queue: NonNullable<ApiErrorBody['queue']> }) {
  const { length, likely_at } = queue
  return (
    <span className="text-ink">
      {length === 0 ? 'No requests are' : plural(length, 'request is', 'requests are')} waiting for these
      GPUs.{' '}
      {likely_at ? (
        <>
          A new request will probably be granted <Until iso={likely_at} /> (<Timestamp iso={likely_at} />
          ).
        </>
      ) : (
        'There is no estimate yet.'
      )}
    </span>
  )
}
