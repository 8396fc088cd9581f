import type { CapacityRequest } from '@slipway/sdk'
import { useState } from 'react'
import { useAction, useOperation } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { useProjectId, useWhyNot } from '../api/me.ts'
import { readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { EventTabs } from '../features/page-tabs.tsx'
import { actionColumn } from '../ui/action-column.tsx'
import { RowButton } from '../ui/button.tsx'
import { Confirm, submitProps } from '../ui/dialog.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { StateBadge } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { Timestamp } from '../ui/time.tsx'
import { ageColumn } from '../ui/time-column.tsx'

const pollMs = 5_000

/** Returns what the request waits for: its new VM, or a stopped one. */
const nameOf = ({ request }: CapacityRequest): string =>
  (request.vm as { name: string } | undefined)?.name ?? `VM ${String(request.start_vm_id).slice(0, 8)}`

/** The requests that wait for GPUs, with their position and estimate. */
export function Queue() {
  const projectId = useProjectId()
  const whyNot = useWhyNot('member')
  const requests = useQuery({
    ...readAll('capacityRequestList', { project_id: projectId }),
    refetchInterval: pollMs,
  })
  const [cancelling, setCancelling] = useState<CapacityRequest | null>(null)
  const target = ({ id }: CapacityRequest) => ({ project_id: projectId, capacity_request_id: id })
  const cancel = useAction({
    run: (request: CapacityRequest) => client.capacityRequestDelete(target(request)),
    done: (request) => `Cancelled the request for ${nameOf(request)}`,
    invalidates: ['capacityRequestList'],
    showsErrors: true,
  })
  const claim = useOperation({
    projectId,
    run: (request: CapacityRequest) => client.capacityRequestClaim(target(request)),
    done: (request) => `${nameOf(request)} is running`,
    failed: (request) => `Not claimed: ${nameOf(request)}`,
    invalidates: ['capacityRequestList', 'vmList'],
  })
  const columns: Column<CapacityRequest>[] = [
    {
      key: 'vm',
      title: 'VM',
      width: 'minmax(140px, 1fr)',
      cell: (request) => <span className="font-medium">{nameOf(request)}</span>,
    },
    {
      key: 'state',
      title: 'State',
      width: '130px',
      cell: (request) => <StateBadge state={request.state} />,
    },
    { key: 'gpus', title: 'GPUs', width: '70px', align: 'right', cell: (request) => request.gpus_wanted },
    {
      key: 'position',
      title: 'Position',
      width: '90px',
      align: 'right',
      cell: (request) => request.position ?? '–',
    },
    {
      key: 'likely',
      title: 'Likely',
      width: 'minmax(150px, 1fr)',
      cell: (request) => <Timestamp iso={request.estimate.likely_at} empty="no estimate" />,
    },
    {
      key: 'latest',
      title: 'Latest',
      width: 'minmax(150px, 1fr)',
      cell: (request) => <Timestamp iso={request.estimate.latest_at} />,
    },
    {
      key: 'note',
      title: 'Note',
      width: 'minmax(140px, 1.4fr)',
      cell: (request) => noteOf(request),
    },
    ageColumn,
    actionColumn('170px', (request: CapacityRequest) => (
      <>
        {request.state === 'held' && request.on_available === 'hold' && (
          <RowButton
            verb="Claim"
            name={nameOf(request)}
            reason={whyNot}
            onClick={() => claim.mutate(request)}
          />
        )}
        {(request.state === 'waiting' || request.state === 'held') && (
          <RowButton
            verb="Cancel"
            name={nameOf(request)}
            kind="danger"
            reason={whyNot}
            onClick={() => setCancelling(request)}
          />
        )}
      </>
    )),
  ]
  return (
    <Page title="Events" isWide>
      <EventTabs />
      <Loaded query={requests} rows={3}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No requests are waiting for GPUs"
              cli="slipway queue create train-7 --type a100.8x --location us-east1-a"
            >
              When a VM type is out of stock, the form for a new VM offers a place in the queue.
            </Empty>
          ) : (
            <Table label="Queue" rows={data} rowKey={({ id }) => id} columns={columns} />
          )
        }
      </Loaded>
      {cancelling && (
        <Confirm
          isOpen
          onClose={() => setCancelling(null)}
          title={`Cancel the request for ${nameOf(cancelling)}`}
          action="Cancel request"
          {...submitProps(cancel, cancelling, () => setCancelling(null))}
        >
          <p>The request will lose its place in the queue.</p>
        </Confirm>
      )}
    </Page>
  )
}

function noteOf(request: CapacityRequest): string {
  if (request.blocked_by) return `Passed over: ${request.blocked_by}`
  if (request.error) return request.error.message
  if (request.held_until) return `Held until ${new Date(request.held_until).toLocaleTimeString()}`
  return request.location
}
