import { useParams } from '@tanstack/react-router'
import { useProjectId } from '../../../api/me.ts'
import { readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { WebhookState, webhookPollMs } from '../../../features/webhooks/state.tsx'
import { eventSelectorText } from '../../../lib/event-kinds.ts'
import { Copyable, CopyButton } from '../../../ui/copy.tsx'
import { Facts, Page, Section } from '../../../ui/page.tsx'
import { Timestamp } from '../../../ui/time.tsx'
import { WebhookActions } from './actions.tsx'
import { Deliveries, useLastError } from './deliveries.tsx'

/** A webhook and its deliveries. */
export function WebhookPage() {
  const projectId = useProjectId()
  const { webhookId = '' } = useParams({ strict: false })
  const webhooks = useQuery({
    ...readAll('webhookList', { project_id: projectId }),
    refetchInterval: webhookPollMs,
  })
  const webhook = webhooks.data?.find(({ id }) => id === webhookId)
  const lastError = useLastError(webhookId)
  return (
    <Page
      title={webhook?.url.replace(/^https?:\/\//, '') ?? 'Webhook'}
      trail={[
        ['Settings', `/projects/${projectId}/settings/keys`],
        ['Webhooks', `/projects/${projectId}/settings/webhooks`],
      ]}
      aside={webhook && <WebhookState webhook={webhook} lastError={lastError} />}
      actions={webhook && <WebhookActions webhook={webhook} />}
    >
      {webhook && (
        <Facts
          items={[
            [
              'URL',
              <span key="url" className="flex items-start gap-1">
                <span className="mono break-all">{webhook.url}</span>
                <CopyButton text={webhook.url} label="Copy the URL" />
              </span>,
            ],
            ['Events', eventSelectorText(webhook.event_types)],
            ['Created', <Timestamp key="created" iso={webhook.created_at} />],
            ['ID', <Copyable key="id" text={webhook.id} />],
          ]}
        />
      )}
      <Section
        title="Deliveries"
        about="The events of each resource are delivered in order. Test events do not wait for earlier events."
      >
        <Deliveries
          webhookId={webhookId}
          isPaused={webhook?.state === 'paused'}
          webhookNextAt={webhook?.next_attempt_at ?? ''}
        />
      </Section>
    </Page>
  )
}
