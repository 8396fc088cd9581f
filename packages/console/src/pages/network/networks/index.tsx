import type { Network, Subnet } from '@slipway/sdk'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { read, readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { NetworkTabs } from '../../../features/page-tabs.tsx'
import { curlLine } from '../../../lib/command-lines.ts'
import { nameProblem } from '../../../lib/names.ts'
import { Button } from '../../../ui/button.tsx'
import { Confirm, FormDialog, submitting } from '../../../ui/dialog.tsx'
import { ErrorState } from '../../../ui/error.tsx'
import { SelectField, TextField } from '../../../ui/field.tsx'
import { Empty, Page, Section, Skeleton } from '../../../ui/page.tsx'
import { Table } from '../../../ui/table.tsx'

type Open =
  | { what: 'network' }
  | { what: 'subnet'; network: Network }
  | { what: 'delete'; network?: Network; subnet?: Subnet }

export function Networks() {
  const projectId = useProjectId()
  const networks = useQuery(readAll('networkList', { project_id: projectId }))
  const subnets = useQuery(readAll('subnetList', { project_id: projectId }))
  const whyNot = useWhyNot('member')
  const [open, setOpen] = useState<Open | null>(null)
  const error = networks.error ?? subnets.error
  const create = (
    <Button
      kind="primary"
      icon={<Plus size={16} />}
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
          title="No network yet"
          action={create}
          cli="slipway network create lab --cidr 10.20.0.0/16"
          curl={curlLine('POST', `/v0.1/projects/${projectId}/vpc/networks`, {
            name: 'lab',
            cidr: '10.20.0.0/16',
          })}
        >
          VMs of one network reach each other by private addresses. It needs a subnet in each location that
          has VMs.
        </Empty>
      ) : (
        networks.data.map((network) => {
          const own = subnets.data.filter(({ vpc_network_id }) => vpc_network_id === network.id)
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
                    reason={whyNot ?? (own.length > 0 ? 'Delete its subnets first.' : undefined)}
                    onClick={() => setOpen({ what: 'delete', network })}
                  >
                    Delete
                  </Button>
                </>
              }
            >
              <p className="text-ink-muted">
                <span className="mono text-ink">{network.cidr}</span>, gateway{' '}
                <span className="mono text-ink">{network.gateway}</span>
              </p>
              <Table
                label={`Subnets of ${network.name}`}
                rows={own}
                rowKey={(subnet) => subnet.id}
                columns={[
                  {
                    key: 'name',
                    title: 'Subnet',
                    width: 'minmax(140px, 2fr)',
                    cell: (subnet) => subnet.name,
                  },
                  {
                    key: 'cidr',
                    title: 'Block',
                    width: 'minmax(130px, 1fr)',
                    cell: (subnet) => <span className="mono">{subnet.cidr}</span>,
                  },
                  {
                    key: 'location',
                    title: 'Location',
                    width: 'minmax(120px, 1fr)',
                    cell: (subnet) => subnet.location,
                  },
                  {
                    key: 'actions',
                    title: '',
                    width: '100px',
                    align: 'right',
                    isBare: true,
                    cell: (subnet) => (
                      <Button
                        size="small"
                        kind="danger"
                        reason={whyNot}
                        onClick={() => setOpen({ what: 'delete', subnet })}
                        aria-label={`Delete ${subnet.name}`}
                      >
                        Delete
                      </Button>
                    ),
                  },
                ]}
              />
            </Section>
          )
        })
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

interface DialogProps {
  projectId: string
  onClose: () => void
}

function NetworkDialog({ projectId, onClose }: DialogProps) {
  const [name, setName] = useState('')
  const [cidr, setCidr] = useState('10.20.0.0/16')
  const create = useAction({
    run: () => client.networkCreate({ project_id: projectId }, { name, cidr: cidr.trim() }),
    done: () => `Created the network ${name}`,
    touches: ['networkList', 'subnetList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create network"
      action="Create network"
      {...submitting(create, undefined, onClose)}
      reason={name ? nameProblem(name) || undefined : 'Give it a name'}
    >
      <TextField label="Name" value={name} onChange={setName} problem={nameProblem(name)} autoFocus />
      <TextField
        label="Block"
        value={cidr}
        onChange={setCidr}
        hint="A private IPv4 block from /16 to /28 that overlaps with no other."
        isMono
      />
    </FormDialog>
  )
}

function SubnetDialog({ projectId, network, onClose }: DialogProps & { network: Network }) {
  const locations = useQuery(read('locationList', { params: { project_id: projectId } }))
  const [name, setName] = useState('')
  const [cidr, setCidr] = useState('')
  const [place, setPlace] = useState('')
  const location = place || locations.data?.items[0]?.name || ''
  const create = useAction({
    run: () =>
      client.subnetCreate(
        { project_id: projectId },
        { name, cidr: cidr.trim(), vpc_network_id: network.id, location },
      ),
    done: () => `Created the subnet ${name}`,
    touches: ['networkList', 'subnetList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Add a subnet to ${network.name}`}
      action="Add subnet"
      {...submitting(create, undefined, onClose)}
      reason={name && cidr ? nameProblem(name) || undefined : 'Give it a name and a block'}
    >
      <TextField label="Name" value={name} onChange={setName} problem={nameProblem(name)} autoFocus />
      <TextField
        label="Block"
        value={cidr}
        onChange={setCidr}
        hint={`Inside ${network.cidr}, down to /28.`}
        isMono
      />
      <SelectField
        label="Location"
        value={location}
        onChange={setPlace}
        choices={(locations.data?.items ?? []).map(({ name }) => ({ value: name, label: name }))}
      />
    </FormDialog>
  )
}

function DeleteDialog({
  projectId,
  network,
  subnet,
  onClose,
}: DialogProps & { network?: Network; subnet?: Subnet }) {
  const what = network ? `the network ${network.name}` : `the subnet ${subnet?.name}`
  const remove = useAction({
    run: (): Promise<unknown> =>
      network
        ? client.networkDelete({ project_id: projectId, network_id: network.id })
        : client.subnetDelete({ project_id: projectId, subnet_id: subnet!.id }),
    done: () => `Deleted ${what}`,
    touches: ['networkList', 'subnetList', 'firewallRuleList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete ${what}`}
      action={network ? 'Delete network' : 'Delete subnet'}
      {...submitting(remove, undefined, onClose)}
    >
      <p>Only an empty one can go. Rules that name it match nothing afterwards.</p>
    </Confirm>
  )
}
