import type { Network, Subnet } from '@slipway/sdk'
import { useState } from 'react'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { NetworkTabs } from '../../../features/page-tabs.tsx'
import { plural } from '../../../lib/format.ts'
import { curlCommand } from '../../../lib/shell.ts'
import { Button, RowButton } from '../../../ui/button.tsx'
import { actionColumn } from '../../../ui/columns/action-column.tsx'
import { ErrorState } from '../../../ui/error.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { NoBreak } from '../../../ui/no-break.tsx'
import { Empty, Page, Section, Skeleton } from '../../../ui/page.tsx'
import { Table } from '../../../ui/table.tsx'
import { DeleteDialog, NetworkDialog, SubnetDialog } from './dialogs.tsx'

type Open =
  | { what: 'network' }
  | { what: 'subnet'; network: Network }
  | { what: 'delete'; network?: Network; subnet?: Subnet }

export function Networks() {
  const projectId = useProjectId()
  const networks = useQuery(readAll('networkList', { project_id: projectId }))
  const subnets = useQuery(readAll('subnetList', { project_id: projectId }))
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const whyNot = useWhyNot('member')
  const whyNotSubnet = ({ id }: Subnet): string | undefined => {
    const inside = (vms.data ?? []).filter((vm) => vm.network_interfaces.some(({ subnet }) => subnet === id))
    if (inside.length === 0) return undefined
    return `In use by ${plural(inside.length, 'VM')}`
  }
  const [open, setOpen] = useState<Open | null>(null)
  const error = networks.error ?? subnets.error
  const create = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setOpen({ what: 'network' })}
    >
      Create network
    </Button>
  )
  return (
    <Page title="Network" actions={create}>
      <NetworkTabs />
      {error && !(networks.data && subnets.data) ? (
        <ErrorState error={error} onRetry={() => void Promise.all([networks.refetch(), subnets.refetch()])} />
      ) : !networks.data || !subnets.data ? (
        <Skeleton />
      ) : networks.data.length === 0 ? (
        <Empty
          title="No networks yet"
          action={create}
          cli="slipway network create lab --cidr 10.20.0.0/16"
          curl={curlCommand('POST', `/v0.1/projects/${projectId}/vpc/networks`, {
            name: 'lab',
            cidr: '10.20.0.0/16',
          })}
        >
          VMs in a network reach each other at private addresses. A network needs a subnet in each location
          that has VMs.
        </Empty>
      ) : (
        <div className="flex flex-col gap-8">
          {networks.data.map((network) => {
            const own = subnets.data.filter(({ vpc_network_id }) => vpc_network_id === network.id)
            const whyNotNetwork =
              own.length > 0 ? 'To delete the network, delete its subnets first.' : undefined
            return (
              <Section
                key={network.id}
                title={network.name}
                actions={
                  <>
                    <Button size="small" reason={whyNot} onClick={() => setOpen({ what: 'subnet', network })}>
                      Add subnet
                    </Button>
                    <Button
                      size="small"
                      kind="danger"
                      reason={whyNot ?? whyNotNetwork}
                      onClick={() => setOpen({ what: 'delete', network })}
                    >
                      Delete
                    </Button>
                  </>
                }
              >
                <p className="-mt-3 text-ink-muted">
                  <span className="mono text-ink">{network.cidr}</span>, gateway{' '}
                  <span className="mono text-ink">{network.gateway}</span>
                  {whyNotNetwork && `. ${whyNotNetwork}`}
                </p>
                <Table
                  label={`Subnets of ${network.name}`}
                  rows={own}
                  rowKey={(subnet) => subnet.id}
                  empty={
                    <p className="card px-4 py-3 text-ink-muted">
                      No subnets yet. A network needs a subnet in each location that has VMs.
                    </p>
                  }
                  columns={[
                    {
                      key: 'name',
                      title: 'Subnet',
                      width: 'minmax(216px, 2fr)',
                      cell: (subnet) => <span className="font-medium">{subnet.name}</span>,
                    },
                    {
                      key: 'cidr',
                      title: 'CIDR block',
                      width: 'minmax(136px, 1fr)',
                      cell: (subnet) => <span className="mono">{subnet.cidr}</span>,
                    },
                    {
                      key: 'location',
                      title: 'Location',
                      width: 'minmax(104px, 1fr)',
                      isFoldable: true,
                      cell: (subnet) => <NoBreak>{subnet.location}</NoBreak>,
                    },
                    {
                      key: 'use',
                      title: 'Usage',
                      width: 'minmax(150px, 1fr)',
                      isFoldable: true,
                      cell: (subnet) => whyNotSubnet(subnet) ?? 'Not in use',
                    },
                    actionColumn('88px', (subnet: Subnet) => (
                      <RowButton
                        verb="Delete"
                        name={subnet.name}
                        kind="danger"
                        reason={whyNot ?? whyNotSubnet(subnet)}
                        onClick={() => setOpen({ what: 'delete', subnet })}
                      />
                    )),
                  ]}
                />
              </Section>
            )
          })}
        </div>
      )}
      {open?.what === 'network' && <NetworkDialog projectId={projectId} onClose={() => setOpen(null)} />}
      {open?.what === 'subnet' && (
        <SubnetDialog projectId={projectId} network={open.network} onClose={() => setOpen(null)} />
      )}
      {open?.what === 'delete' && (
        <DeleteDialog projectId={projectId} {...open} onClose={() => setOpen(null)} />
      )}
    </Page>
  )
}
