import { read } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { webhookPollMs } from '../../../features/webhooks/state.tsx'
import { Copyable } from '../../../ui/copy.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { TextTabs } from '../../../ui/text-tabs.tsx'

interface DeliveryDetailProps {
  target: { project_id: string; webhook_id: string; delivery_id: string }
  isPending: boolean
}

/** What was sent and what the receiver responded, below the row of the delivery. */
export function DeliveryDetail({ target, isPending }: DeliveryDetailProps) {
  const delivery = useQuery({
    ...read('webhookDeliveryGet', { params: target }),
    refetchInterval: isPending ? webhookPollMs : false,
  })
  return (
    <Loaded query={delivery} rows={3}>
      {({ payload, response_status, response_body, error, event_id }) => {
        const sent = {
          name: 'Payload',
          text: payload,
          copyLabel: 'Copy the payload',
          shown: indented(payload),
          empty: 'Not sent yet',
        }
        const result = {
          name: response_status ? `Response ${response_status}` : error ? 'Error' : 'Response',
          text: response_body,
          copyLabel: 'Copy the response',
          shown: indented(response_body),
          empty: response_status ? 'No text in the response' : error || 'No response yet',
        }
        return (
          <div className="flex flex-col gap-2">
            <TextTabs
              label="Request and response"
              // The reason of a failure first.
              texts={error && !response_status ? [result, sent] : [sent, result]}
            />
            <p className="flex flex-wrap items-center gap-x-2 text-sm text-ink-muted">
              Event ID (header webhook-id) <Copyable text={event_id} />
            </p>
          </div>
        )
      }}
    </Loaded>
  )
}

/** Returns frequent connection errors in words, and other errors unchanged. */
export const connectionErrorText = (error: string): string =>
  error
    .replace(/^getaddrinfo (?:ENOTFOUND|EAI_AGAIN) .*/, 'host name not found')
    .replace(/^connect ECONNREFUSED /, 'connection refused: ')

/** Returns JSON with indentation, and other text unchanged. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
