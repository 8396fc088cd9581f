import type { RouteAnswer } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { Loaded } from '../../ui/loaded.tsx'
import { Section } from '../../ui/page.tsx'
import { FleetPage } from '../../ui/page-tabs.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { fleetPollMs } from './fleet.tsx'

type Row = RouteAnswer<'adminCapacityList'>['items'][number]

/** What still fits, and how scattered what is free lies. */
export function Capacity() {
  const capacity = useQuery({ ...read('adminCapacityList', {}), refetchInterval: fleetPollMs })
  const hosts = useQuery({ ...readAll('adminHostList', {}), refetchInterval: fleetPollMs })
  const quarantined = (hosts.data ?? []).flatMap((host) =>
    host.gpus
      .filter((gpu) => gpu.state === 'quarantined' || gpu.state === 'gone')
      .map((gpu) => ({ host, gpu })),
  )
  const columns: Column<Row>[] = [
    { key: 'location', title: 'Location', width: 'minmax(120px, 1fr)', cell: (row) => row.location },
    { key: 'family', title: 'Family', width: 'minmax(100px, 1fr)', cell: (row) => row.family },
    { key: 'free', title: 'Free', width: '80px', align: 'right', cell: (row) => row.free },
    { key: 'claimed', title: 'Held', width: '80px', align: 'right', cell: (row) => row.claimed },
    {
      key: 'quarantined',
      title: 'Quarantined',
      width: '110px',
      align: 'right',
      cell: (row) => row.quarantined,
    },
    { key: 'total', title: 'Total', width: '80px', align: 'right', cell: (row) => row.total },
    {
      key: 'largest',
      title: 'Largest that fits',
      width: 'minmax(130px, 1fr)',
      cell: (row) => row.largest_type || <span className="text-amber-text">none</span>,
    },
    {
      key: 'fragmentation',
      title: 'Fragmentation',
      width: 'minmax(150px, 1fr)',
      cell: (row) => <Fragmentation row={row} />,
    },
  ]
  return (
    <FleetPage>
      <Section title="Capacity">
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
          Fragmentation is the share of free GPUs that the largest VM that still fits cannot use at once.
        </p>
      </Section>
      <Section title="Quarantined and lost GPUs">
        {quarantined.length === 0 ? (
          <p className="text-ink-muted">None.</p>
        ) : (
          <ul className="card divide-y divide-line">
            {quarantined.map(({ host, gpu }) => (
              <li key={gpu.id} className="flex h-9 items-center gap-4 px-3">
                <Link to="/fleet/hosts/$hostId" params={{ hostId: host.id }} className="link">
                  {host.name}
                </Link>
                <span className="mono">{gpu.pci_address}</span>
                <span className="text-ink-muted">{gpu.model}</span>
                <span className="ml-auto text-amber-text">{gpu.state}</span>
              </li>
            ))}
          </ul>
        )}
      </Section>
    </FleetPage>
  )
}

function Fragmentation({ row }: { row: Row }) {
  const largest = Number(/\.(\d+)x$/.exec(row.largest_type)?.[1] ?? 0)
  const share =
    row.free === 0 ? 0 : Math.max(0, 1 - (Math.floor(row.free / Math.max(1, largest)) * largest) / row.free)
  const scattered = largest === 0 ? (row.free > 0 ? 1 : 0) : share
  return (
    <span className="flex items-center gap-2">
      <span className="h-1.5 w-20 overflow-hidden rounded-full bg-sunken">
        <span className="block h-full bg-amber" style={{ width: `${scattered * 100}%` }} />
      </span>
      <span className="text-sm text-ink-muted">{Math.round(scattered * 100)} %</span>
    </span>
  )
}
