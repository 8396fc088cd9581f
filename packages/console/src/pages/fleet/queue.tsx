import type { ListItem } from '@slipway/sdk'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { fleetPollMs } from '../../features/fleet/poll.ts'
import { FleetPage } from '../../features/page-tabs.tsx'
import { shortId } from '../../lib/format.ts'
import { Loaded } from '../../ui/loaded.tsx'
import { Section } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Timestamp } from '../../ui/time.tsx'
import { ageColumn } from '../../ui/time-column.tsx'

type Row = ListItem<'adminCapacityRequestList'>

const columns: Column<Row>[] = [
  {
    key: 'family',
    title: 'Family',
    width: 'minmax(110px, 1fr)',
    cell: (row) => <span className="font-medium">{row.family}</span>,
  },
  {
    key: 'organization',
    title: 'Organization',
    width: '130px',
    cell: (row) => <span className="mono">{shortId(row.organization_id)}</span>,
  },
  { key: 'state', title: 'State', width: '120px', cell: (row) => <StateBadge state={row.state} /> },
  { key: 'position', title: 'Position', width: '90px', align: 'right', cell: (row) => row.position ?? '–' },
  { key: 'gpus', title: 'GPUs', width: '80px', align: 'right', cell: (row) => row.gpus_wanted },
  { key: 'held', title: 'Held', width: '80px', align: 'right', cell: (row) => row.gpus_held },
  {
    key: 'likely',
    title: 'Likely',
    width: 'minmax(150px, 1fr)',
    cell: (row) => <Timestamp iso={row.estimate.likely_at} empty="no estimate" />,
  },
  { key: 'blocked', title: 'Blocked by', width: '110px', cell: (row) => row.blocked_by || '–' },
  ageColumn,
]

/** The queues of all GPU families, by family and position. */
export function FleetQueue() {
  const requests = useQuery({ ...readAll('adminCapacityRequestList', {}), refetchInterval: fleetPollMs })
  const inOrder = (rows: Row[]) =>
    rows.toSorted((a, b) => a.family.localeCompare(b.family) || (a.position ?? 101) - (b.position ?? 101))
  return (
    <FleetPage>
      <Section title="Queue">
        <Loaded query={requests} rows={6}>
          {(data) =>
            data.length === 0 ? (
              <p className="card px-4 py-3 text-ink-muted">No requests are waiting for GPUs.</p>
            ) : (
              <Table label="Queue" rows={inOrder(data)} rowKey={({ id }) => id} columns={columns} />
            )
          }
        </Loaded>
      </Section>
    </FleetPage>
  )
}
