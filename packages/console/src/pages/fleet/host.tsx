import type { Gpu, Host, HostVm } from '@slipway/sdk'
import { useNavigate, useParams } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { GpuAction } from '../../features/fleet/gpu-action.tsx'
import { tenantOf } from '../../features/fleet/gpu-cells.tsx'
import { HostActionHelp } from '../../features/fleet/host-action-help.tsx'
import { acceptsVms, gpuState, hostState } from '../../features/fleet/host-states.ts'
import { fleetPollMs } from '../../features/fleet/poll.ts'
import { TenantVmLink } from '../../features/fleet/tenant-vm-link.tsx'
import { GpuHealth } from '../../features/health/gpu-state.tsx'
import { plural, shortId } from '../../lib/format.ts'
import { operatorCommands } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { ErrorState } from '../../ui/error.tsx'
import { NoBreak } from '../../ui/no-break.tsx'
import { Facts, Page, Section, Skeleton } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Ago } from '../../ui/time.tsx'
import { HostMaintenance } from './host-maintenance.tsx'

const trail: [string, string][] = [['Fleet / Map', '/fleet']]

export function HostPage() {
  const { hostId = '' } = useParams({ strict: false })
  const host = useQuery({
    ...read('adminHostGet', { params: { host_id: hostId } }),
    refetchInterval: fleetPollMs,
  })
  if (!host.data)
    return (
      <Page title="Host" trail={trail}>
        {host.error ? <ErrorState error={host.error} onRetry={() => host.refetch()} /> : <Skeleton />}
      </Page>
    )
  const { name, location, engine, state, last_report_at, forgotten_at, draining_since } = host.data
  return (
    <Page
      title={name}
      trail={trail}
      aside={
        <>
          <span className="text-ink-muted">{location}</span>
          <StateBadge state={hostState(host.data)} since={draining_since} />
        </>
      }
      actions={<HostActions host={host.data} />}
      reasons={Object.values(whyNot(host.data))}
    >
      <HostActionHelp />
      {state === 'draining' && <Drain host={host.data} />}
      <Facts
        items={[
          ['GPUs', gpuText(host.data)],
          ['New VMs', acceptsVms(host.data) ? 'accepted' : 'not accepted'],
          ['Last report', <Ago key="report" iso={last_report_at} />],
          ...forgottenFact(forgotten_at),
          ['Engine', engine],
          ['ID', <Copyable key="id" text={host.data.id} />],
        ]}
      />
      <HostMaintenance host={host.data} />
      <Section title="VMs">
        <Vms vms={host.data.vms} />
      </Section>
      <Section title="GPUs">
        <Gpus host={host.data} />
      </Section>
    </Page>
  )
}

/** Unused GPUs count as unavailable, not free, if the host accepts no VMs. */
function gpuText(host: Host): string {
  const unused = host.gpus.filter((gpu) => gpu.state === 'free').length
  return acceptsVms(host)
    ? `${unused} of ${host.gpus.length} free`
    : `0 of ${host.gpus.length} free, ${unused} unavailable`
}

const forgottenFact = (iso: string): [string, ReactNode][] =>
  iso ? [['Forgotten', <Ago key="forgotten" iso={iso} />]] : []

/** Shows the progress of a drain, which ends when tenants have deleted the last VM. */
function Drain({ host }: { host: Host }) {
  const left = host.vms.length
  const all = Math.max(host.vms_at_drain, left)
  const held = host.gpus.filter((gpu) => gpu.vm_id !== '').length
  return (
    <div role="status" className="card px-4 py-3">
      <p className="font-medium">
        Draining: {left} of {plural(all, 'VM')} left, on {plural(held, 'GPU')}
      </p>
      <p className="text-ink-muted">
        The host accepts no new VMs, and the tenants see an alert. It is drained when the last VM is deleted.
        Running VMs are not stopped.
      </p>
      <div
        role="progressbar"
        aria-label="VMs removed"
        aria-valuemin={0}
        aria-valuemax={all}
        aria-valuenow={all - left}
        className="mt-2 h-1.5 overflow-hidden rounded-full bg-sunken"
      >
        <div
          className="h-full rounded-full bg-accent"
          style={{ width: `${all === 0 ? 100 : (1 - left / all) * 100}%` }}
        />
      </div>
    </div>
  )
}

const invalidates = ['adminHostList', 'adminHostGet', 'adminCapacityList'] as const

const isLeaving = ({ state }: Host) => state === 'draining' || state === 'drained'

/** Returns why actions are disabled. */
const whyNot = (host: Host): Partial<Record<'drain' | 'forget' | 'remove', string>> => ({
  ...(isLeaving(host) && { drain: `The host is already ${host.state}.` }),
  ...(host.forgotten_at
    ? { forget: 'The host is already forgotten.' }
    : host.state !== 'down' && { forget: 'Only a host that is down can be forgotten.' }),
  ...(host.vms.length > 0 && {
    remove: `The host still has ${plural(host.vms.length, 'VM')}. Delete all VMs before you remove it.`,
  }),
})

function HostActions({ host }: { host: Host }) {
  const target = { host_id: host.id }
  const navigate = useNavigate()
  const [asked, setAsked] = useState<'drain' | 'forget' | 'remove' | ''>('')
  const schedule = useAction({
    run: (schedulable: boolean) => client.adminHostUpdate(target, { schedulable }),
    done: (schedulable) => (schedulable ? `Uncordoned ${host.name}` : `Cordoned ${host.name}`),
    failed: (schedulable) => `Could not ${schedulable ? 'uncordon' : 'cordon'} ${host.name}`,
    // Uncordoning also ends a drain, and undo would not start the drain again.
    undo: (schedulable) =>
      isLeaving(host) ? undefined : () => client.adminHostUpdate(target, { schedulable: !schedulable }),
    about: host.id,
    invalidates: [...invalidates],
  })
  const drain = useAction({
    run: () => client.adminHostDrain(target),
    done: (_, result) =>
      result.state === 'drained' ? `${host.name} is drained` : `${host.name} is draining`,
    about: host.id,
    invalidates: [...invalidates],
    showsErrors: true,
  })
  const forget = useAction({
    run: () => client.adminHostForget(target),
    done: () => `Forgot ${host.name}`,
    invalidates: [...invalidates],
    showsErrors: true,
  })
  const remove = useAction({
    run: () => client.adminHostDelete(target),
    done: () => `Removed ${host.name}`,
    invalidates: ['adminHostList', 'adminCapacityList'],
    showsErrors: true,
  })
  const { vms } = host
  const reasons = whyNot(host)
  // Uncordoning a host also ends its drain.
  const isSchedulable = host.schedulable && !isLeaving(host)
  return (
    <>
      <Button isBusy={schedule.isPending} onClick={() => schedule.mutate(!isSchedulable)}>
        {isSchedulable ? 'Cordon' : host.state === 'draining' ? 'End drain' : 'Uncordon'}
      </Button>
      <Button reason={reasons.drain} onClick={() => setAsked('drain')}>
        Drain
      </Button>
      <Button kind="danger" reason={reasons.forget} onClick={() => setAsked('forget')}>
        Forget
      </Button>
      <Button kind="danger" reason={reasons.remove} onClick={() => setAsked('remove')}>
        Remove
      </Button>
      <Confirm
        isOpen={asked === 'drain'}
        onClose={() => setAsked('')}
        title={`Drain host ${host.name}`}
        action="Drain host"
        commands={operatorCommands({
          cli: `slipway admin host drain ${host.id}`,
          path: `/hosts/${host.id}/drain`,
        })}
        {...submitProps(drain, undefined, () => setAsked(''))}
      >
        <p>
          The host will accept no new VMs.{' '}
          {vms.length === 0 ? (
            'It has no VMs. To reverse this, uncordon the host.'
          ) : (
            <>
              The tenants of its <NoBreak>{plural(vms.length, 'VM')}</NoBreak> will see an alert and get an
              event. No VM will be stopped. To reverse this, use End drain.
            </>
          )}
        </p>
      </Confirm>
      {asked === 'forget' && (
        <Confirm
          isOpen
          onClose={() => setAsked('')}
          title={`Forget host ${host.name}`}
          action="Forget host"
          commands={operatorCommands({
            cli: `slipway admin host forget ${host.id}`,
            path: `/hosts/${host.id}/forget`,
          })}
          {...submitProps(forget, undefined, () => setAsked(''))}
          // A host without VMs can have data disks too.
          nameToType={host.name}
        >
          <p>
            Use this only for a host that will not come back.{' '}
            {vms.length === 0 ? (
              'Data disks'
            ) : (
              <>
                The OS disks of its <NoBreak>{plural(vms.length, 'VM')}</NoBreak> and the data disks
              </>
            )}{' '}
            on this host will be permanently lost. Reports from the host will be rejected until it is
            registered again.
          </p>
        </Confirm>
      )}
      <Confirm
        isOpen={asked === 'remove'}
        onClose={() => setAsked('')}
        title={`Remove host ${host.name}`}
        action="Remove host"
        commands={operatorCommands({
          cli: `slipway admin host delete ${host.id}`,
          method: 'DELETE',
          path: `/hosts/${host.id}`,
        })}
        {...submitProps(remove, undefined, () => void navigate({ to: '/fleet' }))}
      >
        <p>The host and its GPUs will be removed from the fleet. You can register the host again later.</p>
      </Confirm>
    </>
  )
}

function Vms({ vms }: { vms: HostVm[] }) {
  if (vms.length === 0) return <p className="card px-4 py-3 text-ink-muted">No VMs on this host.</p>
  return (
    <Table
      label="VMs"
      rows={vms}
      rowKey={(vm) => vm.id}
      columns={[
        {
          key: 'name',
          title: 'Name',
          width: 'minmax(140px, 1.4fr)',
          cell: (vm) => <TenantVmLink vm={vm} />,
        },
        {
          key: 'state',
          title: 'State',
          width: '140px',
          cell: (vm) => <StateBadge state={vm.state} />,
        },
        {
          key: 'tenant',
          title: 'Organization / project',
          width: 'minmax(160px, 1.4fr)',
          cell: tenantOf,
        },
        {
          key: 'id',
          title: 'ID',
          width: '140px',
          cell: (vm) => <Copyable text={vm.id} shown={`…${shortId(vm.id)}`} />,
        },
      ]}
    />
  )
}

function Gpus({ host }: { host: Host }) {
  const { gpus, vms } = host
  return (
    <Table
      label="GPUs"
      rows={[...gpus].sort((a, b) => a.pci_address.localeCompare(b.pci_address))}
      rowKey={(gpu) => gpu.id}
      columns={[
        {
          key: 'pci',
          title: 'PCI address',
          width: 'minmax(130px, 1fr)',
          cell: (gpu) => <span className="mono">{gpu.pci_address}</span>,
        },
        {
          key: 'model',
          title: 'Model',
          width: 'minmax(150px, 1fr)',
          isFoldable: true,
          cell: (gpu) => gpu.model,
        },
        {
          key: 'numa',
          title: 'NUMA',
          width: '70px',
          align: 'right',
          isFoldable: true,
          cell: (gpu) => gpu.numa_node,
        },
        {
          key: 'state',
          title: 'State',
          width: '140px',
          cell: (gpu) => <StateBadge state={gpuState(gpu, host)} />,
        },
        {
          key: 'health',
          title: 'Health',
          width: '150px',
          isFoldable: true,
          cell: (gpu) => <GpuHealth gpu={gpu} />,
        },
        {
          key: 'vm',
          title: 'VM',
          width: 'minmax(130px, 1.6fr)',
          cell: (gpu) => {
            const vm = vms.find(({ id }) => id === gpu.vm_id)
            if (vm) return <TenantVmLink vm={vm} />
            return <Copyable text={gpu.vm_id} shown={gpu.vm_id && `…${shortId(gpu.vm_id)}`} />
          },
        },
        actionColumn('130px', (gpu: Gpu) => <GpuAction gpu={gpu} />),
      ]}
    />
  )
}
