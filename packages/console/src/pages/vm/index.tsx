import { isApiError, type Vm } from '@slipway/sdk'
import { Link, useParams } from '@tanstack/react-router'
import { useProjectId } from '../../api/me.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { EventTable } from '../../features/event-table.tsx'
import { VmActions } from '../../features/vm-actions.tsx'
import { isSimulatedAddress, publicAddressOf } from '../../lib/addresses.ts'
import { Copyable } from '../../ui/copy.tsx'
import { ErrorState } from '../../ui/error.tsx'
import { Facts, Page, Section, Skeleton } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { When } from '../../ui/time.tsx'
import { DangerZone } from './danger-zone.tsx'
import { VmDisks } from './disks.tsx'
import { Interfaces } from './interfaces.tsx'
import { LatestOperation } from './latest-operation.tsx'
import { SerialLog } from './serial-log.tsx'

export function VmPage() {
  const projectId = useProjectId()
  const { vmId = '' } = useParams({ strict: false })
  const vm = useQuery(read('vmGet', { params: { project_id: projectId, vm_id: vmId } }))
  const isGone = isApiError(vm.error) && vm.error.code === 'not_found'
  if (isGone) return <GonePage projectId={projectId} vmId={vmId} last={vm.data} />
  if (!vm.data)
    return (
      <Page title="VM">
        {vm.error ? <ErrorState error={vm.error} onRetry={() => vm.refetch()} /> : <Skeleton rows={10} />}
      </Page>
    )
  return <LivingPage vm={vm.data} />
}

function LivingPage({ vm }: { vm: Vm }) {
  const projectId = vm.project_id
  return (
    <Page
      title={vm.name}
      aside={<StateBadge state={vm.state} since={vm.updated_at} />}
      actions={<VmActions vm={vm} />}
    >
      <SshLine vm={vm} />
      <LatestOperation projectId={projectId} resourceId={vm.id} />
      <Facts
        items={[
          ['Type', vm.type],
          ['Location', vm.location],
          ['Image', vm.image],
          ['Id', <Copyable key="id" text={vm.id} />],
          ['Created', <When key="created" iso={vm.created_at} />],
          ['Changed', <When key="changed" iso={vm.updated_at} />],
          [
            'Ends',
            vm.expires_at ? (
              <span key="ends">
                <When iso={vm.expires_at} />, then {vm.on_expiry === 'delete' ? 'deleted' : 'stopped'}
              </span>
            ) : (
              'no time limit'
            ),
          ],
          [
            'Private address',
            <Copyable key="ip" text={vm.network_interfaces[0]?.ips[0]?.private_ipv4.address ?? ''} />,
          ],
        ]}
      />
      <VmDisks vm={vm} />
      <Interfaces vm={vm} />
      <SerialLog vm={vm} />
      <Section title="Events">
        <EventTable projectId={projectId} resourceId={vm.id} limit={20} />
      </Section>
      <DangerZone vm={vm} />
    </Page>
  )
}

function SshLine({ vm }: { vm: Vm }) {
  const address = publicAddressOf(vm)
  if (isSimulatedAddress(address))
    return (
      <p className="card flex min-h-11 items-center px-4 py-2 text-ink-muted">
        No SSH: the machine is simulated, and nobody answers at {address}.
      </p>
    )
  const [destination = '', port = ''] = vm.ssh_destination.split(/:(?=\d+$)/)
  const line = `ssh ${port ? `-p ${port} ` : ''}${destination}`
  if (!vm.ssh_destination)
    return (
      <p className="card flex h-11 items-center px-4 text-ink-muted">
        {vm.state === 'STATE_CREATING' || vm.state === 'STATE_STARTING'
          ? 'The SSH line appears here when the VM answers.'
          : 'No SSH destination: the VM has no public address, or is not running.'}
      </p>
    )
  return (
    <div className="card flex h-11 items-center gap-2 px-4">
      <span className="text-ink-muted">$</span>
      <Copyable text={line} label="Copy the SSH line" />
    </div>
  )
}

/** The VM has gone; what happened to it can still be read. */
function GonePage({ projectId, vmId, last }: { projectId: string; vmId: string; last: Vm | undefined }) {
  return (
    <Page title={last?.name ?? 'VM'} aside={<span className="text-ink-muted">no longer exists</span>}>
      <p className="text-ink-muted">
        There is no VM with this id in the project: it was deleted, or its creation failed.{' '}
        <Link to="/projects/$projectId/vms" params={{ projectId }} className="link">
          All VMs
        </Link>
      </p>
      <LatestOperation projectId={projectId} resourceId={vmId} isKept />
      <Section title="Events">
        <EventTable projectId={projectId} resourceId={vmId} limit={20} />
      </Section>
    </Page>
  )
}
