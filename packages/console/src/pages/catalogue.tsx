import { families, familyNames, type RouteResponse } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { client, visitor } from '../api/client.ts'
import { session } from '../api/session.ts'
import { useQuery } from '../api/use-query.ts'
import { PublicFrame } from '../features/public-frame.tsx'
import { count, usd } from '../lib/format.ts'
import { lastProject } from '../lib/last-project.ts'
import { useSearchState } from '../lib/use-search-state.ts'
import { Select } from '../ui/field.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { NoBreak } from '../ui/no-break.tsx'
import { Section, useTitle } from '../ui/page.tsx'
import { Mark } from '../ui/state.tsx'
import { type Column, noValue, Table } from '../ui/table.tsx'

type Item = RouteResponse<'catalogueList'>['items'][number]

/** A type with its availability in each location. */
interface Row extends Omit<Item, 'location' | 'available'> {
  locations: Pick<Item, 'location' | 'available'>[]
}

const pollMs = 10_000

/** Returns the GPU models in the order in which the form for a new VM shows them. */
function modelsOf(rows: Row[]): string[] {
  const order = familyNames.map((family) => families[family].model as string)
  const models = [...new Set(rows.map(({ gpu_model }) => gpu_model))]
  return models.toSorted((a, b) => order.indexOf(a) - order.indexOf(b))
}

/** Types, prices and availability, also for visitors who are not signed in. */
export function Catalogue() {
  const catalogue = useQuery({
    queryKey: ['catalogueList'],
    queryFn: ({ signal }) => (session.isOpen() ? client : visitor).catalogueList({}, { signal }),
    refetchInterval: pollMs,
  })
  const [search, setSearch] = useSearchState()
  const items = catalogue.data?.items
  const rows = useMemo(
    () =>
      rowsOf(items ?? []).filter(
        ({ gpu_model, locations }) =>
          (!search.gpu || gpu_model === search.gpu) &&
          (!search.location ||
            locations.some(({ location, available }) => location === search.location && available)),
      ),
    [items, search.gpu, search.location],
  )
  useTitle('Types and prices · Slipway')
  const choices = (any: string, values: string[]) => [
    { value: '', label: any },
    ...[...new Set(values)].sort().map((value) => ({ value, label: value })),
  ]
  return (
    <PublicFrame
      aside={
        <Link to="/" className="link">
          {session.isOpen() ? 'Back to the console' : 'Sign in'}
        </Link>
      }
    >
      <h1 className="text-xl font-semibold">Types and prices</h1>
      <p className="text-ink-muted">
        Each GPU is dedicated to one VM. A VM is billed per millisecond while it runs. Availability is live.
      </p>
      <Loaded query={catalogue} rows={12}>
        {(data) => (
          <>
            <div className="filter-bar">
              <Select
                isSmall
                label="GPU"
                value={search.gpu ?? ''}
                onChange={(gpu) => setSearch({ gpu })}
                choices={choices(
                  'Any GPU',
                  data.items.map(({ gpu_model }) => gpu_model),
                )}
              />
              <Select
                isSmall
                label="Available in"
                value={search.location ?? ''}
                onChange={(location) => setSearch({ location })}
                choices={choices(
                  'Any location',
                  data.items.map(({ location }) => location),
                )}
              />
            </div>
            {rows.length === 0 && (
              <p className="card px-4 py-3 text-ink-muted">No types match the filters.</p>
            )}
            {modelsOf(rows).map((model) => (
              <GpuSection
                key={model}
                model={model}
                rows={rows.filter(({ gpu_model }) => gpu_model === model)}
                sort={search.sort ?? ''}
                onSort={(sort) => setSearch({ sort })}
              />
            ))}
          </>
        )}
      </Loaded>
    </PublicFrame>
  )
}

interface GpuSectionProps {
  model: string
  rows: Row[]
  sort: string
  onSort: (sort: string) => void
}

/** The types with one GPU model, and the lowest price per GPU. */
function GpuSection({ model, rows, sort, onSort }: GpuSectionProps) {
  const prices = rows.flatMap((row) => usdPerGpu(row) ?? []).toSorted((a, b) => a - b)
  const [lowest, highest] = [prices[0], prices.at(-1)].map(usd)
  const memory = rows[0]?.gpu_memory_gb
  return (
    <Section
      title={model}
      about={[
        ...(memory ? [`${count(memory)} GB of memory per GPU`] : []),
        ...(prices.length > 0 ? [`${lowest === highest ? '' : 'from '}${lowest} per GPU-hour`] : []),
      ].join(', ')}
    >
      <Table
        label={model}
        rows={rows}
        columns={columns}
        rowKey={({ type }) => type}
        sort={sort}
        onSort={onSort}
        hasSortChoice={false}
      />
    </Section>
  )
}

const usdPerGpu = ({ usd_per_hour, gpu_count }: Row): number | null =>
  usd_per_hour === null ? null : usd_per_hour / gpu_count

function rowsOf(items: Item[]): Row[] {
  const rows = new Map<string, Row>()
  for (const { location, available, ...type } of items) {
    const row = rows.get(type.type) ?? { ...type, locations: [] }
    row.locations.push({ location, available })
    rows.set(type.type, row)
  }
  return [...rows.values()]
}

/** Links to the form for a VM of the type, if the user is signed in and has opened a project. */
function TypeName({ type }: { type: string }) {
  const projectId = session.isOpen() ? lastProject.get() : ''
  if (!projectId) return <span className="font-medium">{type}</span>
  return (
    <Link
      to="/projects/$projectId/vms/new"
      params={{ projectId }}
      search={{ type }}
      className="font-medium hover:text-accent-text hover:underline"
      title={`Create a VM of type ${type}`}
    >
      {type}
    </Link>
  )
}

const columns: Column<Row>[] = [
  {
    key: 'type',
    title: 'Type',
    width: 'minmax(120px, 1fr)',
    sortBy: ({ type }) => type,
    cell: ({ type }) => (
      <NoBreak>
        <TypeName type={type} />
      </NoBreak>
    ),
  },
  {
    key: 'gpus',
    title: 'GPUs',
    width: '80px',
    align: 'right',
    sortBy: ({ gpu_count }) => gpu_count,
    cell: ({ gpu_count }) => gpu_count,
  },
  {
    key: 'price',
    title: 'Price per hour',
    width: '130px',
    align: 'right',
    sortBy: ({ usd_per_hour }) => usd_per_hour ?? undefined,
    cell: ({ usd_per_hour }) => usd(usd_per_hour),
  },
  {
    key: 'stock',
    title: 'Available in',
    width: 'minmax(220px, 2fr)',
    cell: ({ locations }) => (
      <span className="inline-flex flex-wrap gap-x-4 gap-y-1 py-1 max-md:justify-end">
        {locations.map(
          ({ location, available }) =>
            available && (
              <span key={location} className="inline-flex items-center gap-1.5 whitespace-nowrap">
                <Mark tone="good" />
                {location}
              </span>
            ),
        )}
        {locations.every(({ available }) => !available) && (
          <span className="inline-flex items-center gap-1.5 text-amber-text">
            <Mark tone="warn" />
            out of stock
          </span>
        )}
      </span>
    ),
  },
  {
    key: 'cores',
    title: 'Cores',
    width: '80px',
    align: 'right',
    isFoldable: true,
    sortBy: ({ cpu_cores }) => cpu_cores,
    cell: ({ cpu_cores }) => cpu_cores,
  },
  {
    key: 'memory',
    title: 'RAM',
    width: '100px',
    align: 'right',
    sortBy: ({ memory_gb }) => memory_gb,
    cell: ({ memory_gb }) => `${count(memory_gb)} GB`,
  },
  {
    key: 'scratch',
    title: 'Scratch',
    width: '100px',
    align: 'right',
    cell: ({ scratch_gb }) => (scratch_gb > 0 ? `${count(scratch_gb)} GB` : noValue),
  },
]
