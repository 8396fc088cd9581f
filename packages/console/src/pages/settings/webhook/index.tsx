import type { WebhookDelivery } from '@slipway/sdk'
import { useParams } from '@tanstack/react-router'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { read, readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { SettingsTabs } from '../../../features/page-tabs.tsx'
import { Button } from '../../../ui/button.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { Page } from '../../../ui/page.tsx'
import { StateBadge } from '../../../ui/state.tsx'
import { Table } from '../../../ui/table.tsx'
import { Until } from '../../../ui/time.tsx'
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
      title="Webhook"
      trail={[
        ['Settings', `/projects/${projectId}/settings/keys`],
        ['Webhooks', `/projects/${projectId}/settings/webhooks`],
      ]}
      aside={webhook && <StateBadge state={webhook.state} />}
      actions={webhook && <WebhookActions webhook={webhook} />}
    >
      <SettingsTabs />
      <p className="mono break-all">{webhook?.url ?? '–'}</p>
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
                  cell: (delivery) => delivery.event_type,
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
                {
                  key: 'actions',
                  title: '',
                  width: '100px',
                  align: 'right',
                  isBare: true,
                  cell: (delivery) => (
                    <Button
                      size="small"
                      reason={whyNot ?? whyNotReplay(delivery)}
                      isBusy={replay.isPending && replay.variables?.id === delivery.id}
                      onClick={() => replay.mutate(delivery)}
                    >
                      Replay
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
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

/** The same event twice on its way would come twice. */
const whyNotReplay = ({ state }: WebhookDelivery): string | undefined =>
  state === 'pending' ? 'It is still to be delivered.' : undefined
