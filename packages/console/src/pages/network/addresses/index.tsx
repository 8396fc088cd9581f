import type { Address } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { usePriceOf } from '../../../api/prices.ts'
import { readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { NetworkTabs } from '../../../features/page-tabs.tsx'
import { usd } from '../../../lib/format.ts'
import { curlCommand } from '../../../lib/shell.ts'
import { Button, RowButton } from '../../../ui/button.tsx'
import { actionColumn } from '../../../ui/columns/action-column.tsx'
import { Copyable } from '../../../ui/copy.tsx'
import { ErrorState } from '../../../ui/error.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { NoBreak } from '../../../ui/no-break.tsx'
import { Empty, Page, Skeleton } from '../../../ui/page.tsx'
import { noValue, Table } from '../../../ui/table.tsx'
import { AssignDialog, DeleteDialog, ReserveDialog, UnassignDialog } from './dialogs.tsx'

type Open = { what: 'reserve' } | { what: 'assign' | 'unassign' | 'delete'; address: Address }

export function Addresses() {
  const projectId = useProjectId()
  const addresses = useQuery(readAll('addressList', { project_id: projectId }))
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const idlePrice = usePriceOf(projectId)('reserved-address')
  const whyNot = useWhyNot('member')
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const nameOf = (vmId: string) => vms.data?.find(({ id }) => id === vmId)?.name ?? 'A deleted VM'
  const reserve = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setOpen({ what: 'reserve' })}
    >
      Reserve address
    </Button>
  )
  return (
    <Page title="Network" actions={reserve}>
      <NetworkTabs />
      {addresses.error && !addresses.data ? (
        <ErrorState error={addresses.error} onRetry={() => addresses.refetch()} />
      ) : !addresses.data || !vms.data ? (
        <Skeleton />
      ) : addresses.data.length === 0 ? (
        <Empty
          title="No reserved addresses yet"
          action={reserve}
          cli="slipway address create gateway --location us-east1-a"
          curl={curlCommand('POST', `/v0.1/projects/${projectId}/vpc/addresses`, {
            name: 'gateway',
            location: 'us-east1-a',
          })}
        >
          A reserved address stays with the project when its VM is deleted, and can be assigned to another VM.
          Other public addresses are released with their VM.
        </Empty>
      ) : (
        <Table
          label="Reserved addresses"
          rows={addresses.data}
          rowKey={(address) => address.id}
          columns={[
            {
              key: 'name',
              title: 'Name',
              width: 'minmax(110px, 2fr)',
              cell: (address) => <span className="font-medium">{address.name}</span>,
            },
            {
              key: 'address',
              title: 'Address',
              width: 'minmax(176px, 1fr)',
              cell: (address) => <Copyable text={address.address} />,
            },
            {
              key: 'vm',
              title: 'VM',
              width: 'minmax(140px, 1fr)',
              isFoldable: true,
              cell: ({ vm_id }) =>
                vm_id === '' ? (
                  // An address is billed while no VM has it.
                  idlePrice === undefined ? (
                    noValue
                  ) : (
                    <span className="figures text-ink-muted">
                      {noValue}, billed {usd(idlePrice)}/h
                    </span>
                  )
                ) : (
                  <Link
                    to="/projects/$projectId/vms/$vmId"
                    params={{ projectId, vmId: vm_id }}
                    className="link truncate"
                  >
                    {nameOf(vm_id)}
                  </Link>
                ),
            },
            {
              key: 'location',
              title: 'Location',
              width: 'minmax(120px, 1fr)',
              isFoldable: true,
              cell: (address) => <NoBreak>{address.location}</NoBreak>,
            },
            actionColumn('190px', (address: Address) => (
              <>
                <RowButton
                  verb={address.vm_id === '' ? 'Assign' : 'Move'}
                  name={address.name}
                  reason={whyNot}
                  onClick={() => setOpen({ what: 'assign', address })}
                />
                {address.vm_id === '' ? (
                  <RowButton
                    verb="Delete"
                    name={address.name}
                    kind="danger"
                    reason={whyNot}
                    onClick={() => setOpen({ what: 'delete', address })}
                  />
                ) : (
                  <RowButton
                    verb="Unassign"
                    name={address.name}
                    reason={whyNot}
                    onClick={() => setOpen({ what: 'unassign', address })}
                  />
                )}
              </>
            )),
          ]}
        />
      )}
      {open?.what === 'reserve' && (
        <ReserveDialog projectId={projectId} vms={vms.data ?? []} onClose={close} />
      )}
      {open?.what === 'assign' && (
        <AssignDialog projectId={projectId} vms={vms.data ?? []} address={open.address} onClose={close} />
      )}
      {open?.what === 'unassign' && (
        <UnassignDialog projectId={projectId} address={open.address} onClose={close} />
      )}
      {open?.what === 'delete' && (
        <DeleteDialog projectId={projectId} address={open.address} onClose={close} />
      )}
    </Page>
  )
}
