import { pauseAfterFailingS } from '@slipway/contract/event-types'
import type { Webhook } from '@slipway/sdk'
import { StateBadge } from '../../ui/state.tsx'
import { Timestamp, Until } from '../../ui/time.tsx'

/** No event reports the result of deliveries, so the pages poll. */
export const webhookPollMs = 3_000

interface WebhookStateProps {
  webhook: Webhook
  /** Why the last attempt failed, if it is known. With it, the text also says when the webhook will be paused. */
  lastError?: string
}

/** Shows the state of a webhook. While deliveries fail, also shows since when, why, and when the next attempt is. */
export function WebhookState({ webhook, lastError = '' }: WebhookStateProps) {
  const { state, failing_since, next_attempt_at } = webhook
  if (state !== 'active' || !failing_since) return <StateBadge state={state} />
  const pausedAt = new Date(Date.parse(failing_since) + pauseAfterFailingS * 1000).toISOString()
  return (
    <span className="inline-flex flex-wrap items-baseline gap-x-2">
      <StateBadge state="failing" />
      <span className="text-sm text-ink-muted">
        since <Timestamp iso={failing_since} />
        {lastError && `: ${lastError}`}
        {next_attempt_at && (
          <>
            . Next attempt <Until iso={next_attempt_at} />
          </>
        )}
        {lastError && (
          <>
            . Will be paused on <Timestamp iso={pausedAt} /> unless a delivery succeeds; waiting deliveries
            are kept.
          </>
        )}
      </span>
    </span>
  )
}
