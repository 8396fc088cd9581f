import { vmActions } from '@slipway/sdk'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useMe } from '../../api/me.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { useStuck } from '../../features/alerts.tsx'
import { AuditEvents } from '../../features/fleet/audit-events.tsx'
import { HostOfVm } from '../../features/fleet/host-link.tsx'
import { OperationLink } from '../../features/fleet/operation-link.tsx'
import type { AdminOperation } from '../../features/fleet/stuck-actions.tsx'
import { VmQuestion } from '../../features/fleet/vm-question.tsx'
import { stepText } from '../../lib/format.ts'
import { stateWord } from '../../lib/states.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Facts, Page, Section } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Timestamp } from '../../ui/time.tsx'

const trail: [string, string][] = [
  ['Fleet', '/fleet'],
  ['VMs', '/fleet/vms'],
]

/** The operators' view of a VM: tenant, host, operations and events, but no scripts or disks. */
export function FleetVm() {
  const { vmId = '' } = useParams({ strict: false })
  const { projects } = useMe()
  // Each read is recorded in the tenant's audit log, so the page does not poll.
  const vms = useQuery(read('adminVmList', { query: { ids: vmId } }))
  const [asked, setAsked] = useState<'stop' | 'delete' | null>(null)
  const isStuck = useStuck().has(vmId)
  const vm = vms.data?.items[0]
  if (!vm)
    return (
      <Page title="VM" trail={trail}>
        <Loaded query={vms} rows={6}>
          {() => (
            <p className="card px-4 py-3 text-ink-muted">
              There is no VM with this ID. It may have been deleted.
            </p>
          )}
        </Loaded>
        <History vmId={vmId} />
      </Page>
    )
  const isMember = projects.some(({ id }) => id === vm.project_id)
  return (
    <Page
      title={vm.name}
      trail={trail}
      aside={<StateBadge state={isStuck ? 'stuck' : vm.state} />}
      actions={
        <>
          {isMember && (
            <ButtonLink
              to="/projects/$projectId/vms/$vmId"
              params={{ projectId: vm.project_id, vmId: vm.id }}
            >
              Open in project
            </ButtonLink>
          )}
          <Button
            reason={vmActions.STOP.from.includes(vm.state) ? undefined : `The VM is ${stateWord(vm.state)}.`}
            onClick={() => setAsked('stop')}
          >
            Stop
          </Button>
          <Button
            kind="danger"
            reason={vm.state === 'STATE_DELETING' ? 'The VM is being deleted.' : undefined}
            onClick={() => setAsked('delete')}
          >
            Delete
          </Button>
        </>
      }
    >
      <Facts
        items={[
          [
            'Organization',
            <Link
              key="organization"
              to="/fleet/organizations/$organizationId"
              params={{ organizationId: vm.organization_id }}
              className="link"
            >
              {vm.organization_name}
            </Link>,
          ],
          ['Project', vm.project_name],
          ['Type', vm.type],
          ['Location', vm.location],
          ['Host', <HostOfVm key="host" vm={vm} />],
          ['Created', <Timestamp key="created" iso={vm.created_at} />],
          ['ID', <Copyable key="id" text={vm.id} />],
          ['Project ID', <Copyable key="project" text={vm.project_id} />],
        ]}
      />
      <History vmId={vm.id} />
      {asked && <VmQuestion vm={vm} what={asked} onClose={() => setAsked(null)} />}
    </Page>
  )
}

/** The operations and events of a VM. They are kept for 90 days, even after the VM is deleted. */
function History({ vmId }: { vmId: string }) {
  const operations = useQuery(read('adminOperationList', { query: { resource_id: vmId, limit: 20 } }))
  return (
    <>
      <Section title="Operations">
        <Loaded query={operations} rows={3}>
          {({ items }) => (
            <Table
              label="Operations"
              rows={items}
              rowKey={(row) => row.operation_id}
              empty={<p className="card px-4 py-3 text-ink-muted">No operations in the last 90 days.</p>}
              columns={[
                {
                  key: 'what',
                  title: 'Operation',
                  width: 'minmax(120px, 1fr)',
                  cell: (row) => <OperationLink operation={row} />,
                },
                {
                  key: 'state',
                  title: 'State',
                  width: '130px',
                  cell: (row) => <StateBadge state={row.is_stuck ? 'stuck' : row.state} />,
                },
                ...(items.some(({ step, error, attempts }) => step || error || attempts > 0)
                  ? detailColumns
                  : []),
                timestampColumn('Started', 'started_at'),
              ]}
            />
          )}
        </Loaded>
      </Section>
      <Section title="Events">
        <AuditEvents resource={vmId} limit={50} />
      </Section>
    </>
  )
}

/** Columns that are shown only if an operation has a current step, an error or a failed attempt. */
const detailColumns: Column<AdminOperation>[] = [
  {
    key: 'error',
    title: 'Step and last error',
    width: 'minmax(160px, 2fr)',
    isFoldable: true,
    cell: ({ step, error }) => [step && stepText(step), error].filter(Boolean).join(': '),
  },
  {
    key: 'attempts',
    title: 'Attempts',
    width: '90px',
    align: 'right',
    isFoldable: true,
    cell: (row) => row.attempts > 0 && row.attempts,
  },
]
