import type { WebhookDelivery } from '@slipway/sdk'
import { useParams } from '@tanstack/react-router'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { read, readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { eventSelectorWords } from '../../../lib/event-kinds.ts'
import { eventTypeWords } from '../../../lib/format.ts'
import { actionColumn } from '../../../ui/action-column.tsx'
import { Button } from '../../../ui/button.tsx'
import { Copyable, CopyButton } from '../../../ui/copy.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { Facts, Page, Section } from '../../../ui/page.tsx'
import { StateBadge } from '../../../ui/state.tsx'
import { Table } from '../../../ui/table.tsx'
import { Until, When } from '../../../ui/time.tsx'
import { whenColumn } from '../../../ui/time-column.tsx'
import { WebhookActions } from './actions.tsx'

/** Shows what one webhook has delivered, and what it has not. */
export function WebhookPage() {
  const projectId = useProjectId()
  const { webhookId = '' } = useParams({ strict: false })
  const target = { project_id: projectId, webhook_id: webhookId }
  const webhooks = useQuery(readAll('webhookList', { project_id: projectId }))
  const deliveries = useQuery({
    ...read('webhookDeliveryList', { params: target, query: { limit: 100 } }),
    refetchInterval: 3_000,
  })
  const webhook = webhooks.data?.find(({ id }) => id === webhookId)
  const whyNot = useWhyNot('admin')
  const replay = useAction({
    run: (delivery: WebhookDelivery) => client.webhookDeliveryReplay({ ...target, delivery_id: delivery.id }),
    done: () => 'Queued for another delivery',
    touches: ['webhookDeliveryList'],
  })
  return (
    <Page
      title={webhook?.url.replace(/^https?:\/\//, '') ?? 'Webhook'}
      trail={[
        ['Settings', `/projects/${projectId}/settings/keys`],
        ['Webhooks', `/projects/${projectId}/settings/webhooks`],
      ]}
      aside={webhook && <StateBadge state={webhook.state} />}
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
            ['Id', <Copyable key="id" text={webhook.id} />],
          ]}
        />
      )}
      <Section title="Deliveries">
        <Loaded query={deliveries} rows={4}>
          {(data) =>
            data.items.length === 0 ? (
              <p className="card px-4 py-3 text-ink-muted">
                Nothing has been delivered yet. “Send test” makes a first one.
              </p>
            ) : (
              <Table
                label="Deliveries"
                rows={data.items}
                rowKey={(delivery) => delivery.id}
                columns={[
                  {
                    key: 'event',
                    title: 'Event',
                    width: 'minmax(160px, 1.4fr)',
                    cell: ({ event_type }) => <span title={event_type}>{eventTypeWords(event_type)}</span>,
                  },
                  {
                    key: 'state',
                    title: 'State',
                    width: '170px',
                    cell: (delivery) => <DeliveryState delivery={delivery} />,
                  },
                  {
                    key: 'attempts',
                    title: 'Attempts',
                    width: '90px',
                    align: 'right',
                    cell: (delivery) => delivery.attempts,
                  },
                  {
                    key: 'answer',
                    title: 'Last answer',
                    width: 'minmax(160px, 1.6fr)',
                    cell: (delivery) => (
                      <span title={delivery.error}>{delivery.response_status || delivery.error || '–'}</span>
                    ),
                  },
                  whenColumn('Created', 'created_at'),
                  actionColumn('100px', (delivery: WebhookDelivery) =>
                    // The same event twice on its way would come twice.
                    delivery.state === 'pending' ? null : (
                      <Button
                        size="small"
                        reason={whyNot}
                        isBusy={replay.isPending && replay.variables?.id === delivery.id}
                        onClick={() => replay.mutate(delivery)}
                      >
                        Replay
                      </Button>
                    ),
                  ),
                ]}
              />
            )
          }
        </Loaded>
      </Section>
    </Page>
  )
}

/** A delivery that has failed and is tried again is trouble, unlike one that only waits for its turn. */
function DeliveryState({ delivery }: { delivery: WebhookDelivery }) {
  const { state, error, response_status, next_attempt_at } = delivery
  const hasFailed = error !== '' || response_status !== 0
  if (state !== 'pending' || !hasFailed) return <StateBadge state={state} />
  return (
    <span className="inline-flex items-center gap-1.5">
      <StateBadge state="retrying" />
      {next_attempt_at && <Until iso={next_attempt_at} />}
    </span>
  )
}
