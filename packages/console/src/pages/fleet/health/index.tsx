import type { GpuFaultDay, Host, RouteQuery } from '@slipway/sdk'
import { lazy, Suspense, useMemo } from 'react'
import { read, readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { countColumn } from '../../../features/fleet/columns.tsx'
import { GpuAction } from '../../../features/fleet/gpu-action.tsx'
import { type GpuOfHost, gpuColumns } from '../../../features/fleet/gpu-columns.tsx'
import { HostNameLink } from '../../../features/fleet/host-link.tsx'
import { fleetPollMs } from '../../../features/fleet/poll.ts'
import { TenantVmLink } from '../../../features/fleet/tenant-vm-link.tsx'
import { GpuBadge, needsCheck } from '../../../features/health/gpu-state.tsx'
import { xidText } from '../../../features/health/xid-texts.ts'
import { FleetPage } from '../../../features/page-tabs.tsx'
import { readNow } from '../../../lib/clock.ts'
import { plural } from '../../../lib/format.ts'
import { useSearchState } from '../../../lib/use-search-state.ts'
import { actionColumn } from '../../../ui/columns/action-column.tsx'
import { Select } from '../../../ui/field.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { Sentence } from '../../../ui/no-break.tsx'
import { Section } from '../../../ui/page.tsx'
import { StateBadge } from '../../../ui/state.tsx'
import { noValue, Table } from '../../../ui/table.tsx'
import { Ago } from '../../../ui/time.tsx'
import { datesUntil, type FaultTotal, shortDate, stackFaults, totalsOf } from './bars.ts'

// Load the chart code while the page fetches its data.
const chart = import('./chart.tsx')
chart.catch(() => {})
const FaultChart = lazy(() => chart)

type Grouping = NonNullable<RouteQuery<'adminGpuFaultDayList'>['group_by']>
const groupings: Record<Grouping, string> = { model: 'Model', host: 'Host', xid: 'XID' }
const ranges = [7, 30, 90]

/** GPU faults over time, and the GPUs that need a check. */
export function FleetHealth() {
  const [search, setSearch] = useSearchState()
  const days = ranges.find((each) => String(each) === search.days) ?? 30
  const by = search.by && search.by in groupings ? (search.by as Grouping) : 'model'
  const faults = useQuery({
    ...read('adminGpuFaultDayList', { query: { days, group_by: by } }),
    refetchInterval: 60_000,
  })
  const hosts = useQuery({ ...readAll('adminHostList', {}), refetchInterval: fleetPollMs })
  return (
    <FleetPage>
      <Section
        title="Faults over time"
        about={
          faults.data?.items.length
            ? 'Faults that hosts found or guests reported. Other errors do not mean that a GPU is faulty, and are not in the chart.'
            : 'Faults that hosts found or guests reported.'
        }
        actions={
          <>
            <Select
              isSmall
              label="Time range"
              value={String(days)}
              onChange={(value) => setSearch({ days: value === '30' ? '' : value })}
              choices={ranges.map((each) => ({ value: String(each), label: `Last ${each} days` }))}
            />
            <Select
              isSmall
              label="Group by"
              value={by}
              onChange={(value) => setSearch({ by: value === 'model' ? '' : value })}
              choices={[
                { value: 'model', label: 'By model' },
                { value: 'host', label: 'By host' },
                { value: 'xid', label: 'By XID' },
              ]}
            />
          </>
        }
      >
        <Loaded query={faults} rows={8}>
          {({ items }) =>
            items.length === 0 ? (
              <p className="card px-4 py-3 text-ink-muted">No faults in the last {days} days.</p>
            ) : (
              <FaultHistory items={by === 'xid' ? items.map(withXidText) : items} days={days} by={by} />
            )
          }
        </Loaded>
      </Section>
      <Section
        title="GPUs to check"
        about="A suspect GPU is checked as soon as no VM uses it. If it passes, it returns to stock; if not, it is quarantined."
      >
        <Loaded query={hosts} rows={3}>
          {(data) => <GpusToCheck hosts={data} />}
        </Loaded>
      </Section>
    </FleetPage>
  )
}

const withXidText = (item: GpuFaultDay): GpuFaultDay => ({
  ...item,
  group: item.group && xidText(Number(item.group)),
})

function FaultHistory({ items, days, by }: { items: GpuFaultDay[]; days: number; by: Grouping }) {
  const dates = useMemo(() => datesUntil(readNow(), days), [days])
  const bars = useMemo(() => stackFaults(items, dates), [items, dates])
  return (
    <>
      {bars.groups.length > 0 && (
        <Suspense fallback={<div role="status" aria-label="Loading" className="h-64" />}>
          <FaultChart bars={bars} dates={dates} />
        </Suspense>
      )}
      <Table
        label={`Faults by ${groupings[by]}`}
        rows={totalsOf(items)}
        rowKey={({ key }) => key}
        columns={[
          {
            key: 'name',
            title: groupings[by],
            width: 'minmax(122px, 1.4fr)',
            cell: ({ name, hostId }: FaultTotal) =>
              hostId ? <HostNameLink id={hostId} name={name} /> : <span className="font-medium">{name}</span>,
          },
          ...(by === 'host'
            ? [
                {
                  key: 'location',
                  title: 'Location',
                  width: 'minmax(110px, 1fr)',
                  cell: ({ location }: FaultTotal) => location,
                },
              ]
            : []),
          countColumn('Found by hosts', ({ hostFaults }: FaultTotal) => hostFaults, '126px'),
          countColumn('Reported by guests', ({ guestFaults }: FaultTotal) => guestFaults, '156px'),
          countColumn('Other errors', ({ otherErrors }: FaultTotal) => otherErrors, '120px'),
          {
            key: 'last',
            title: 'Last report',
            width: '120px',
            cell: ({ lastDate }: FaultTotal) => shortDate(lastDate),
          },
        ]}
      />
    </>
  )
}

/** Where there is little width, the health matters more than the state. A claimed GPU shows its VM. */
const columnsBeforeHealth = gpuColumns.map((column) =>
  column.key === 'state'
    ? { ...column, width: 'minmax(150px, 1.3fr)', isFoldable: true, cell: stateCell }
    : column,
)

function stateCell({ host, gpu }: GpuOfHost) {
  const vm = host.vms.find(({ id }) => id === gpu.vm_id)
  if (!vm) return <StateBadge state={gpu.state} />
  return (
    <>
      used by <TenantVmLink vm={vm} className="link" />{' '}
      <span className="text-ink-muted">
        <Sentence text={`${vm.organization_name} / ${vm.project_name}`} />
      </span>
    </>
  )
}

function LastError({ gpu: { last_fault, fault_count } }: GpuOfHost) {
  const { at, xid, source } = last_fault
  if (!at) return noValue
  return (
    <span title={`${plural(fault_count, 'error')} recorded`}>
      {xidText(xid)},{' '}
      <span className="text-ink-muted">
        {source === 'guest' ? 'reported by guest' : 'found by host'} <Ago iso={at} />
      </span>
    </span>
  )
}

function GpusToCheck({ hosts }: { hosts: Host[] }) {
  const rows = hosts.flatMap((host) => host.gpus.filter(needsCheck).map((gpu) => ({ host, gpu })))
  if (rows.length === 0) return <p className="card px-4 py-3 text-ink-muted">No GPUs need a check.</p>
  return (
    <Table
      label="GPUs to check"
      rows={rows}
      rowKey={({ gpu }) => gpu.id}
      columns={[
        ...columnsBeforeHealth,
        { key: 'health', title: 'Health', width: '130px', cell: ({ gpu }) => <GpuBadge gpu={gpu} /> },
        {
          key: 'fault',
          title: 'Last error',
          width: 'minmax(190px, 1.8fr)',
          isFoldable: true,
          cell: LastError,
        },
        // A GPU that a VM uses cannot be quarantined.
        ...(rows.every(({ gpu }) => gpu.state === 'claimed')
          ? []
          : [actionColumn('130px', ({ gpu }: GpuOfHost) => <GpuAction gpu={gpu} />)]),
      ]}
    />
  )
}
