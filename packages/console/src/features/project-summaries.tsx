import type { ListItem } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { count, money, shownUsd, usd } from '../lib/format.ts'
import { Loaded } from '../ui/loaded.tsx'
import { Section } from '../ui/page.tsx'
import { type Column, Table } from '../ui/table.tsx'

type ProjectSummary = ListItem<'organizationProjectList'>

const sumOf = (rows: ProjectSummary[], of: (row: ProjectSummary) => number): number =>
  rows.reduce((sum, row) => sum + of(row), 0)

interface ProjectSummariesProps {
  organizationId: string
  title: string
  label: string
}

/** The projects of an organization, with their VMs and costs. */
export function ProjectSummaries({ organizationId, title, label }: ProjectSummariesProps) {
  const list = useQuery({
    ...read('organizationProjectList', { params: { organization_id: organizationId } }),
    refetchInterval: 10_000,
  })
  return (
    <Section title={title}>
      <Loaded query={list} rows={3}>
        {({ items }) => (
          <Table
            label={label}
            rows={items.toSorted((a, b) => b.usd_per_hour - a.usd_per_hour || a.name.localeCompare(b.name))}
            foot={items.length > 1 ? [totalOf(items)] : []}
            columns={columns}
            rowKey={(row) => row.id || 'total'}
            empty={<p className="card px-4 py-3 text-ink-muted">No projects yet.</p>}
          />
        )}
      </Loaded>
    </Section>
  )
}

/** The costs are rounded as the rows show them, so that the total is the sum of what is visible. */
const totalOf = (items: ProjectSummary[]): ProjectSummary => ({
  id: '',
  name: 'All projects',
  vms: sumOf(items, ({ vms }) => vms),
  running_vms: sumOf(items, ({ running_vms }) => running_vms),
  usd_per_hour: sumOf(items, ({ usd_per_hour }) => shownUsd(usd_per_hour)),
  month_to_date_usd: sumOf(items, ({ month_to_date_usd }) => Number(month_to_date_usd.toFixed(2))),
})

const columns: Column<ProjectSummary>[] = [
  {
    key: 'name',
    title: 'Project',
    width: 'minmax(140px, 2fr)',
    cell: ({ id, name }) =>
      id === '' ? (
        name
      ) : (
        <Link
          to="/projects/$projectId"
          params={{ projectId: id }}
          className="font-medium hover:text-accent-text hover:underline"
        >
          {name}
        </Link>
      ),
  },
  {
    key: 'running',
    title: 'Running VMs',
    width: 'minmax(110px, 1fr)',
    align: 'right',
    cell: ({ running_vms }) => count(running_vms),
  },
  { key: 'vms', title: 'VMs', width: 'minmax(70px, 1fr)', align: 'right', cell: ({ vms }) => count(vms) },
  {
    key: 'rate',
    title: 'Current cost',
    width: 'minmax(120px, 1fr)',
    align: 'right',
    cell: ({ usd_per_hour }) => `${usd(usd_per_hour)}/h`,
  },
  {
    key: 'month',
    title: 'Month to date',
    width: 'minmax(120px, 1fr)',
    align: 'right',
    cell: ({ month_to_date_usd }) => money(month_to_date_usd),
  },
]
