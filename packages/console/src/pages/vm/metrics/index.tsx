import { type RouteResponse, type Vm, vmStateTable, vmType } from '@slipway/sdk'
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { lazy, Suspense, useMemo } from 'react'
import { client } from '../../../api/client.ts'
import { useQuery } from '../../../api/use-query.ts'
import { readNow } from '../../../lib/clock.ts'
import { useSearchState } from '../../../lib/use-search-state.ts'
import { Select } from '../../../ui/field.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { Empty, Section, Skeleton } from '../../../ui/page.tsx'
import { VmTabPage } from '../page.tsx'
import { chartsOf, metricNames, type RangeName, ranges } from './charts.ts'
import { MetricTables } from './tables.tsx'

// Load the chart code while the page fetches its data.
const chart = import('./chart.tsx')
chart.catch(() => {})
const Chart = lazy(() => chart)

export const VmMetricsPage = () => <VmTabPage>{(vm) => <Metrics vm={vm} />}</VmTabPage>

/** The query key contains the range's name, not its start time, so that a refetch replaces the data. */
const readMetrics = ({ project_id, id: vm_id }: Vm, name: RangeName) =>
  queryOptions<RouteResponse<'vmMetrics'>>({
    queryKey: ['vmMetrics', { project_id, vm_id, range: name }],
    queryFn: ({ signal }) => {
      const { seconds, step } = ranges[name]
      const start = new Date(readNow() - seconds * 1000).toISOString()
      const query = { names: metricNames.join(','), start, step }
      return client.call('vmMetrics', { params: { project_id, vm_id }, query, signal })
    },
    refetchInterval: 60_000,
    placeholderData: keepPreviousData,
  })

function Metrics({ vm }: { vm: Vm }) {
  const [search, setSearch] = useSearchState()
  const range = search.range && search.range in ranges ? (search.range as RangeName) : '1h'
  const isTable = search.view === 'table'
  const metrics = useQuery(readMetrics(vm, range))
  const charts = useMemo(() => chartsOf(metrics.data?.items ?? [], vmType(vm.type)), [metrics.data, vm.type])
  const hasGpus = charts.some(({ title }) => title === 'GPU usage')
  return (
    <Section
      title="Metrics"
      actions={
        <>
          <Select
            label="Time range"
            isSmall
            value={range}
            onChange={(value) => setSearch({ range: value === '1h' ? '' : value })}
            choices={Object.entries(ranges).map(([value, { label }]) => ({ value, label }))}
          />
          <Select
            label="View"
            isSmall
            value={isTable ? 'table' : ''}
            onChange={(view) => setSearch({ view })}
            choices={[
              { value: '', label: 'Charts' },
              { value: 'table', label: 'Tables' },
            ]}
          />
        </>
      }
    >
      <Loaded query={metrics} rows={8}>
        {() =>
          charts.length === 0 ? (
            <Empty
              title="No metrics in this time range"
              cli={`slipway vm metrics ${vm.name} --since ${range}`}
            >
              {vmStateTable[vm.state].isBilled
                ? 'The first values of a VM appear within two minutes.'
                : 'Metrics are recorded only while a VM is running.'}
            </Empty>
          ) : (
            <>
              {isTable ? (
                <MetricTables charts={charts} />
              ) : (
                <Suspense fallback={<Skeleton rows={8} />}>
                  <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
                    {charts.map((each) => (
                      <Chart key={each.title} chart={each} />
                    ))}
                  </div>
                </Suspense>
              )}
              {!hasGpus && (
                <p className="text-ink-muted">
                  No GPU metrics. They require an image that contains the GPU reporter and has the tag{' '}
                  <code>slipway-guest</code>.
                </p>
              )}
            </>
          )
        }
      </Loaded>
    </Section>
  )
}
