import { useParams } from '@tanstack/react-router'
import { useProjectId } from '../../../api/me.ts'
import { readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { WebhookState, webhookPollMs } from '../../../features/webhooks/state.tsx'
import { eventSelectorWords } from '../../../lib/event-kinds.ts'
import { Copyable, CopyButton } from '../../../ui/copy.tsx'
import { Facts, Page, Section } from '../../../ui/page.tsx'
import { When } from '../../../ui/time.tsx'
import { WebhookActions } from './actions.tsx'
import { Deliveries } from './deliveries.tsx'

/** Shows what one webhook has delivered, and what it has not. */
export function WebhookPage() {
  const projectId = useProjectId()
  const { webhookId = '' } = useParams({ strict: false })
  const webhooks = useQuery({
    ...readAll('webhookList', { project_id: projectId }),
    refetchInterval: webhookPollMs,
  })
  const webhook = webhooks.data?.find(({ id }) => id === webhookId)
  return (
    <Page
      title={webhook?.url.replace(/^https?:\/\//, '') ?? 'Webhook'}
      trail={[
        ['Settings', `/projects/${projectId}/settings/keys`],
        ['Webhooks', `/projects/${projectId}/settings/webhooks`],
      ]}
      aside={webhook && <WebhookState webhook={webhook} />}
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
            ['Events', eventSelectorWords(webhook.event_types)],
            ['Created', <When key="created" iso={webhook.created_at} />],
            ['ID', <Copyable key="id" text={webhook.id} />],
          ]}
        />
      )}
      <Section title="Deliveries">
        <Deliveries webhookId={webhookId} isPaused={webhook?.state === 'paused'} />
      </Section>
    </Page>
  )
}
