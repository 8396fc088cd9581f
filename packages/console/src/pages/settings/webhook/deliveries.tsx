import { deliveryStates } from '@slipway/contract/states'
import type { WebhookDelivery } from '@slipway/sdk'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { webhookPollMs } from '../../../features/webhooks/state.tsx'
import { eventTypeText, plural, resourceText, shortId, zonedTitle } from '../../../lib/format.ts'
import { useSearchState } from '../../../lib/use-search-state.ts'
import { Button, RowButton } from '../../../ui/button.tsx'
import { actionColumn } from '../../../ui/columns/action-column.tsx'
import { ErrorState } from '../../../ui/error.tsx'
import { Select } from '../../../ui/field.tsx'
import { Name, NoBreak } from '../../../ui/no-break.tsx'
import { Skeleton } from '../../../ui/page.tsx'
import { RowToggle } from '../../../ui/row-toggle.tsx'
import { StateBadge } from '../../../ui/state.tsx'
import { type Column, Table } from '../../../ui/table.tsx'
import { Timestamp, Until } from '../../../ui/time.tsx'
import { connectionErrorText, DeliveryDetail } from './delivery-detail.tsx'

/** Returns the delivery that is tried first: the one with the earliest time. The rows are newest first. */
const firstOf = (rows: WebhookDelivery[]): WebhookDelivery | undefined =>
  rows
    .filter(({ next_attempt_at }) => next_attempt_at)
    .toReversed()
    .toSorted((one, other) => one.next_attempt_at.localeCompare(other.next_attempt_at))[0]

const isPending = ({ state }: WebhookDelivery) => state === 'pending'

/** Reads the deliveries of a webhook, newest first. */
function useDeliveries(webhookId: string, state?: WebhookDelivery['state']) {
  const target = { project_id: useProjectId(), webhook_id: webhookId, ...(state && { state }) }
  return useInfiniteQuery({
    queryKey: ['webhookDeliveryList', target],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.webhookDeliveryList({ ...target, limit: 100, page_token: pageParam || undefined }, { signal }),
    getNextPageParam: (page) => page.next_page_token || undefined,
    refetchInterval: webhookPollMs,
  })
}

/** Returns why the last attempt of a delivery failed, or the status of its response; empty before the first attempt. */
const responseText = ({ error, response_status }: WebhookDelivery): string =>
  error ? connectionErrorText(error) : response_status === 0 ? '' : `status ${response_status}`

/** Returns why the newest delivery that is retried or was given up has failed. */
export function useLastError(webhookId: string): string {
  const rows = useDeliveries(webhookId).data?.pages.flatMap(({ items }) => items) ?? []
  const failed = rows.find((delivery) => ['retrying', 'failed'].includes(stateOf(delivery)))
  return failed ? responseText(failed) : ''
}

/** The deliveries of a webhook, with the last result and the next attempt. */
export function Deliveries({
  webhookId,
  isPaused,
  webhookNextAt,
}: {
  webhookId: string
  isPaused: boolean
  /** No delivery is attempted before this time. Empty unless deliveries fail. */
  webhookNextAt: string
}) {
  const projectId = useProjectId()
  const target = { project_id: projectId, webhook_id: webhookId }
  const whyNot = useWhyNot('admin')
  const [search, setSearch] = useSearchState()
  const state = deliveryStates.find((each) => each === search.state)
  const deliveries = useDeliveries(webhookId, state)
  const replay = useAction({
    run: (delivery: WebhookDelivery) => client.webhookDeliveryReplay({ ...target, delivery_id: delivery.id }),
    done: () => 'Delivery queued again',
    failed: () => 'Could not queue the delivery again',
    invalidates: ['webhookDeliveryList'],
  })
  if (deliveries.error && !deliveries.data)
    return <ErrorState error={deliveries.error} onRetry={() => deliveries.refetch()} />
  if (!deliveries.data) return <Skeleton rows={4} />
  const rows = deliveries.data.pages.flatMap((page) => page.items)
  const actions = actionColumn('100px', (delivery: WebhookDelivery) =>
    // Replaying a pending delivery would deliver it twice.
    isPending(delivery) ? null : (
      <RowButton
        verb="Replay"
        name={`${eventTypeText(delivery.event_type)} ${delivery.resource_name}`}
        reason={whyNot}
        isBusy={replay.isPending && replay.variables?.id === delivery.id}
        onClick={() => replay.mutate(delivery)}
      />
    ),
  )
  const first = deliveries.hasNextPage ? undefined : firstOf(rows)
  const nextAttempt: Column<WebhookDelivery> = {
    key: 'next',
    title: 'Next attempt',
    width: '156px',
    isFoldable: true,
    cell: (delivery) =>
      isPending(delivery) && (
        <NextAttempt
          delivery={delivery}
          isFirst={delivery === first}
          isPaused={isPaused}
          webhookNextAt={webhookNextAt}
        />
      ),
  }
  const columns: Column<WebhookDelivery>[] = [
    {
      key: 'event',
      title: 'Event',
      width: 'minmax(214px, 1.2fr)',
      cell: ({ id, event_type }) => (
        <RowToggle
          isOpen={id === search.delivery}
          title={`Payload and response of ${event_type}`}
          onToggle={() => setSearch({ delivery: id === search.delivery ? '' : id })}
        >
          {event_type === 'webhook.test' ? 'Test event' : eventTypeText(event_type)}
        </RowToggle>
      ),
    },
    {
      key: 'on',
      title: 'Resource',
      width: 'minmax(180px, 1.5fr)',
      isFoldable: true,
      cell: (delivery) => <ResourceCell delivery={delivery} webhookId={webhookId} projectId={projectId} />,
    },
    {
      key: 'state',
      title: 'State',
      width: '120px',
      cell: (delivery) => <StateBadge state={stateOf(delivery)} />,
    },
    ...(rows.some(isPending) ? [nextAttempt] : []),
    {
      key: 'response',
      title: 'Last result',
      width: 'minmax(162px, 1.4fr)',
      isFoldable: true,
      cell: (delivery) => responseText(delivery) && <LastResponse delivery={delivery} />,
    },
    {
      key: 'created_at',
      title: zonedTitle('Queued'),
      width: '170px',
      align: 'right',
      cell: ({ created_at }) => <Timestamp iso={created_at} hasSeconds hasZone={false} />,
    },
    ...(rows.every(isPending) ? [] : [actions]),
  ]
  return (
    <>
      {(rows.length > 0 || state) && (
        <div className="filter-bar">
          <Select
            isSmall
            label="State"
            value={state ?? ''}
            onChange={(state) => setSearch({ state })}
            choices={[
              { value: '', label: 'Any state' },
              ...deliveryStates.map((each) => ({ value: each, label: each })),
            ]}
          />
        </div>
      )}
      <Table
        label="Deliveries"
        rows={rows}
        rowKey={(delivery) => delivery.id}
        columns={columns}
        below={(delivery) =>
          delivery.id === search.delivery && (
            <DeliveryDetail
              target={{ ...target, delivery_id: delivery.id }}
              isPending={isPending(delivery)}
            />
          )
        }
        empty={
          <p className="card px-4 py-3 text-ink-muted">
            {state ? `No ${state} deliveries.` : 'No deliveries yet. Use “Send test” to send a test event.'}
          </p>
        }
      />
      {deliveries.hasNextPage && (
        <div>
          <Button isBusy={deliveries.isFetchingNextPage} onClick={() => deliveries.fetchNextPage()}>
            Show older deliveries
          </Button>
        </div>
      )}
    </>
  )
}

/** The result of the last attempt, and the number of attempts unless the first one succeeded. */
const LastResponse = ({ delivery }: { delivery: WebhookDelivery }) => (
  <>
    <Name text={responseText(delivery)} />
    {(delivery.attempts > 1 || stateOf(delivery) === 'retrying') && (
      <span className="text-ink-muted">
        , <NoBreak>{plural(delivery.attempts, 'attempt')}</NoBreak>
      </span>
    )}
  </>
)

interface ResourceCellProps {
  delivery: WebhookDelivery
  webhookId: string
  projectId: string
}

/** The event's resource. Every VM is a link, because deleted VMs also have a page. */
function ResourceCell({ delivery, webhookId, projectId }: ResourceCellProps) {
  const { resource_type, resource_id, resource_name } = delivery
  if (resource_id === webhookId) return 'this webhook'
  const kind = resourceText(resource_type)
  const name = resource_name || <NoBreak>…{shortId(resource_id)}</NoBreak>
  if (resource_type !== 'vm')
    return (
      <span title={resource_id}>
        {kind} {name}
      </span>
    )
  return (
    <>
      {kind}{' '}
      <Link to="/projects/$projectId/vms/$vmId" params={{ projectId, vmId: resource_id }} className="link">
        {name}
      </Link>
    </>
  )
}

/** A pending delivery that has already failed is shown as retrying. */
const stateOf = ({ state, error, response_status }: WebhookDelivery): string =>
  state === 'pending' && (error !== '' || response_status !== 0) ? 'retrying' : state

interface NextAttemptProps {
  delivery: WebhookDelivery
  isFirst: boolean
  isPaused: boolean
  webhookNextAt: string
}

/**
 * The events of a resource are delivered in order, so an event can wait for earlier ones. After a pause of a failing
 * webhook, the first delivery is tried, and the others can wait until one succeeds.
 */
function NextAttempt({ delivery: { next_attempt_at }, isFirst, isPaused, webhookNextAt }: NextAttemptProps) {
  if (isPaused) return 'when resumed'
  if (!next_attempt_at) return 'after earlier events'
  // ISO timestamps in the same format can be compared as strings.
  if (next_attempt_at > webhookNextAt) return <Until iso={next_attempt_at} />
  return isFirst ? <Until iso={webhookNextAt} /> : 'after recovery'
}
