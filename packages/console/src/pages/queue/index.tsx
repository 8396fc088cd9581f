import type { CapacityRequest } from '@slipway/sdk'
import { useState } from 'react'
import { useAction, useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { VmTabs } from '../../features/page-tabs.tsx'
import { percent, shortId } from '../../lib/format.ts'
import { curlCommand, projectCommands } from '../../lib/shell.ts'
import { RowButton } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page, Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { endedColumns, openColumns, type WantedResource } from './columns.tsx'

/** Positions and estimates change without an event, so the page polls. */
const pollMs = 5_000

const isOpen = ({ state }: CapacityRequest) => state === 'waiting' || state === 'held'

/** The requests that are waiting for GPUs, with position and estimate, and the ended requests. */
export function Queue() {
  const projectId = useProjectId()
  const requests = useQuery({
    ...readAll('capacityRequestList', { project_id: projectId }),
    refetchInterval: pollMs,
  })
  return (
    <Page title="VMs" isWide>
      <VmTabs />
      <Loaded query={requests} rows={3}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No requests are waiting for GPUs"
              cli="slipway queue create train-7 --type a100.8x --location us-east1-a"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/capacity-requests`, {
                vm: {
                  name: 'train-7',
                  type: 'a100.8x',
                  location: 'us-east1-a',
                  image: 'ubuntu24.04-nvidia:latest',
                  ssh_public_key: 'ssh-ed25519 …',
                },
              })}
            >
              When a VM type is out of stock, the form for creating a VM offers to wait for it. The VM is
              created when GPUs become available. Waiting is free.
            </Empty>
          ) : (
            <Requests requests={data} />
          )
        }
      </Loaded>
    </Page>
  )
}

function Requests({ requests }: { requests: CapacityRequest[] }) {
  const projectId = useProjectId()
  const whyNot = useWhyNot('member')
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const [cancelling, setCancelling] = useState<CapacityRequest | null>(null)
  const target = ({ id }: CapacityRequest) => ({ project_id: projectId, capacity_request_id: id })
  /** Returns what the request is waiting for: a new VM or group, or a stopped VM. */
  const wantedOf = ({ request }: CapacityRequest): WantedResource => {
    const group = request.instance_group as
      | (WantedResource & { desired_count: number; vm?: Partial<WantedResource> })
      | undefined
    if (group) {
      const type = group.vm?.type && `${group.desired_count} × ${group.vm.type}`
      return { ...group.vm, ...(type && { type }), name: group.name }
    }
    if (request.vm) return request.vm as WantedResource
    const id = String(request.start_vm_id ?? request.replace_vm_id)
    return vms.data?.find((vm) => vm.id === id) ?? { name: `VM …${shortId(id)}` }
  }
  const nameOf = (request: CapacityRequest) => wantedOf(request).name
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
    failed: (request) => `Could not claim ${nameOf(request)}`,
    invalidates: ['capacityRequestList', 'vmList', 'instanceGroupList'],
  })
  const open = requests.filter(isOpen)
  const ended = requests.filter((request) => !isOpen(request))
  const hitRate = open[0]?.estimate.hit_rate ?? null
  const actions = actionColumn('164px', (request: CapacityRequest) => (
    <>
      {request.state === 'held' && request.on_available === 'hold' && (
        <RowButton
          verb="Claim"
          name={nameOf(request)}
          kind="primary"
          reason={whyNot}
          isBusy={claim.isPending && claim.variables?.id === request.id}
          onClick={() => claim.mutate(request)}
        />
      )}
      <RowButton
        verb="Cancel"
        name={nameOf(request)}
        kind="danger"
        reason={whyNot}
        onClick={() => setCancelling(request)}
      />
    </>
  ))
  return (
    <>
      {open.length === 0 ? (
        <p className="card px-4 py-3 text-ink-muted">No requests are waiting for GPUs.</p>
      ) : (
        <Table
          label="Queue"
          rows={open}
          rowKey={({ id }) => id}
          columns={[...openColumns(wantedOf, open), ageColumn, actions]}
        />
      )}
      {open.some(({ estimate }) => estimate.likely_at) && (
        <p className="text-sm text-ink-muted">
          Half of all requests are granted by the likely time, and nine out of ten by the latest time.{' '}
          {hitRate !== null &&
            `${percent(hitRate)} of the most recent requests were granted by their latest time.`}
        </p>
      )}
      {ended.length > 0 && (
        <Section title="Ended requests">
          <Table
            label="Ended requests"
            rows={ended}
            rowKey={({ id }) => id}
            columns={endedColumns(projectId, nameOf)}
          />
        </Section>
      )}
      {cancelling && (
        <Confirm
          isOpen
          onClose={() => setCancelling(null)}
          title={`Cancel the request for ${nameOf(cancelling)}`}
          action="Cancel request"
          commands={projectCommands(projectId, {
            cli: `slipway queue cancel ${cancelling.id}`,
            method: 'DELETE',
            path: `/capacity-requests/${cancelling.id}`,
          })}
          dismiss="Keep request"
          {...submitProps(cancel, cancelling, () => setCancelling(null))}
        >
          <p>
            {cancelling.state === 'held'
              ? 'The GPUs that are held for the request will be offered to other requests.'
              : 'The request will lose its position in the queue.'}
          </p>
        </Confirm>
      )}
    </>
  )
}
