import { familyOfModel, type Host, type RouteResponse } from '@slipway/sdk'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { countColumn, nameColumn, ShareBar } from '../../features/fleet/columns.tsx'
import { GpuAction } from '../../features/fleet/gpu-action.tsx'
import { type GpuOfHost, gpuColumns } from '../../features/fleet/gpu-columns.tsx'
import { hostOrder } from '../../features/fleet/host-order.ts'
import { acceptsVms } from '../../features/fleet/host-states.ts'
import { fleetPollMs } from '../../features/fleet/poll.ts'
import { FleetPage } from '../../features/page-tabs.tsx'
import { percent } from '../../lib/format.ts'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Section } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'

type Row = RouteResponse<'adminCapacityList'>['items'][number]

const foldable = (column: Column<Row>): Column<Row> => ({ ...column, isFoldable: true })

/** Free capacity by location and family, fragmentation, and quarantined GPUs. */
export function Capacity() {
  const capacity = useQuery({ ...read('adminCapacityList', {}), refetchInterval: fleetPollMs })
  const hosts = useQuery({ ...readAll('adminHostList', {}), refetchInterval: fleetPollMs })
  const quarantined = (hosts.data ?? [])
    .toSorted(hostOrder(capacity.data?.items ?? []))
    .flatMap((host) =>
      host.gpus
        .filter((gpu) => gpu.state === 'quarantined' || gpu.state === 'gone')
        .map((gpu) => ({ host, gpu })),
    )
  const columns: Column<Row>[] = [
    nameColumn('Family', (row) => row.family),
    {
      key: 'location',
      title: 'Location',
      width: 'minmax(120px, 1fr)',
      isInTitle: true,
      cell: (row) => row.location,
    },
    countColumn('Free', (row) => row.free),
    foldable(countColumn('Unavailable', (row) => row.unavailable, '110px')),
    foldable(countColumn('Claimed', (row) => row.claimed)),
    foldable(countColumn('Quarantined', (row) => row.quarantined, '110px')),
    foldable(countColumn('Held', (row) => row.held)),
    countColumn('Total', (row) => row.total),
    {
      key: 'largest',
      title: 'Largest VM',
      width: 'minmax(130px, 1fr)',
      cell: (row) => row.largest_type || <span className="text-amber-text">none</span>,
    },
    {
      key: 'fragmentation',
      title: 'Fragmentation',
      width: 'minmax(150px, 1fr)',
      isFoldable: true,
      cell: (row) => {
        const share = fragmentationOf(hosts.data ?? [], row)
        return <ShareBar value={share} tone="amber" text={percent(share)} />
      },
    },
  ]
  return (
    <FleetPage>
      <Section title="GPUs by family">
        <Loaded query={capacity} rows={12}>
          {(data) => (
            <Table
              label="Capacity"
              rows={data.items.filter(({ total }) => total > 0)}
              columns={columns}
              rowKey={(row) => `${row.location} ${row.family}`}
            />
          )}
        </Loaded>
        <p className="text-sm text-ink-muted">
          Held GPUs belong to a capacity request or a reservation. Unavailable GPUs are unused, but their host
          is down, cordoned or draining. The largest VM is the largest type that a tenant can create now.
          Fragmentation is the share of free GPUs that are on partly used hosts. The others are on empty
          hosts, where the largest VMs fit.
        </p>
      </Section>
      <Section
        title="Hosts by free GPUs"
        about="Hosts that accept VMs, counted by how many of their GPUs are free."
      >
        <Loaded query={hosts} rows={6}>
          {(data) => (
            <Table
              label="Hosts by free GPUs"
              rows={hostSizes(data, capacity.data?.items ?? [])}
              rowKey={({ family, location, size }) => `${family} ${location} ${size}`}
              columns={[
                nameColumn('Family', ({ family }: HostSize) => family),
                {
                  key: 'location',
                  title: 'Location',
                  width: 'minmax(112px, 1fr)',
                  isInTitle: true,
                  cell: ({ location }) => location,
                },
                { ...countColumn('GPUs per host', ({ size }: HostSize) => size, '116px'), isFoldable: true },
                { ...countColumn('Hosts', ({ hosts }: HostSize) => hosts.length, '70px'), isFoldable: true },
                ...[8, 4, 2, 1].map((min) =>
                  countColumn(
                    `${min}+ free`,
                    ({ hosts }: HostSize) => hosts.filter((host) => freeOn([host]) >= min).length,
                    '80px',
                  ),
                ),
              ]}
            />
          )}
        </Loaded>
      </Section>
      <Section title="Quarantined and missing GPUs">
        {quarantined.length === 0 ? (
          <p className="card px-4 py-3 text-ink-muted">No quarantined or missing GPUs.</p>
        ) : (
          <Table
            label="Quarantined and missing GPUs"
            rows={quarantined}
            rowKey={({ gpu }) => gpu.id}
            columns={[...gpuColumns, actionColumn('130px', ({ gpu }: GpuOfHost) => <GpuAction gpu={gpu} />)]}
          />
        )}
      </Section>
    </FleetPage>
  )
}

interface HostSize {
  /** The family or, if it is not known, the model. */
  family: string
  location: string
  /** The number of GPUs of each host. */
  size: number
  hosts: Host[]
}

/** Groups the hosts that accept VMs by family, location and number of GPUs, in the order of the capacity table. */
function hostSizes(hosts: Host[], capacity: Row[]): HostSize[] {
  const sizes = new Map<string, HostSize>()
  for (const host of hosts.filter(acceptsVms)) {
    const model = host.gpus[0]?.model
    if (!model) continue
    const family: string = familyOfModel(model) ?? model
    const { location } = host
    const key = `${family} ${location} ${host.gpus.length}`
    const size = sizes.get(key) ?? { family, location, size: host.gpus.length, hosts: [] }
    size.hosts.push(host)
    sizes.set(key, size)
  }
  const positionOf = ({ family, location }: HostSize) =>
    capacity.findIndex((row) => row.family === family && row.location === location)
  return [...sizes.values()].toSorted((one, other) => positionOf(one) - positionOf(other))
}

const isUnused = (host: Host) => host.gpus.every(({ state }) => state === 'free')
const freeOn = (hosts: Host[]) =>
  hosts.reduce((sum, { gpus }) => sum + gpus.filter(({ state }) => state === 'free').length, 0)

/** Returns the share of free GPUs that are on partly used hosts. Counts only hosts that accept VMs. */
function fragmentationOf(hosts: Host[], { location, family }: Row): number {
  const open = hosts.filter(
    (host) =>
      host.location === location && acceptsVms(host) && familyOfModel(host.gpus[0]?.model ?? '') === family,
  )
  const free = freeOn(open)
  return free === 0 ? 0 : freeOn(open.filter((host) => !isUnused(host))) / free
}
