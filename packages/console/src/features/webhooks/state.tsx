import type { Webhook } from '@slipway/sdk'
import { StateBadge } from '../../ui/state.tsx'
import { Timestamp, Until } from '../../ui/time.tsx'

/** No event reports the result of deliveries, so the pages poll. */
export const webhookPollMs = 3_000

interface WebhookStateProps {
  webhook: Webhook
  /** Why the last attempt failed, if it is known. */
  lastError?: string
}

/** Shows the state of a webhook. While deliveries fail, also shows since when, why, and when the next attempt is. */
export function WebhookState({ webhook, lastError = '' }: WebhookStateProps) {
  const { state, failing_since, next_attempt_at } = webhook
  if (state !== 'active' || !failing_since) return <StateBadge state={state} />
  return (
    <span className="inline-flex flex-wrap items-baseline gap-x-2">
      <StateBadge state="failing" />
      <span className="text-sm text-ink-muted">
        since <Timestamp iso={failing_since} />
        {next_attempt_at && (
          <>
            , next attempt <Until iso={next_attempt_at} />
          </>
        )}
        {lastError && `. Last error: ${lastError}`}
      </span>
    </span>
  )
}
