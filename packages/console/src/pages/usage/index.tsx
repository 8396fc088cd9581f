import type { UsageItem } from '@slipway/sdk'
import { keepPreviousData } from '@tanstack/react-query'
import { lazy, Suspense, useMemo } from 'react'
import { client } from '../../api/client.ts'
import { useMe, useProject } from '../../api/me.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { CreateVmButton } from '../../features/create-vm-button.tsx'
import { localDate, money, utcDate } from '../../lib/format.ts'
import { daysIn, daysText, lastMonths, monthBefore, monthNow, monthText } from '../../lib/months.ts'
import { saveText } from '../../lib/save-text.ts'
import { showToast } from '../../lib/toasts.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { Select } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import {
  type Grouping,
  groupBy,
  groupingText,
  groupOf,
  readGrouping,
  sumsOf,
  sumUsd,
  totalsOf,
  withOthers,
} from './grouping.ts'
import { changeText, Totals } from './tables.tsx'

const dayMs = 86_400_000

// Load the chart code while the page fetches its data.
const chart = import('./chart.tsx')
chart.catch(() => {})
const Chart = lazy(() => chart)

const datesOf = (month: string) => ({
  start_date: `${month}-01`,
  end_date: `${month}-${String(daysIn(month)).padStart(2, '0')}`,
})

export function Usage() {
  const project = useProject()
  const { projects } = useMe()
  const [search, setSearch] = useSearchState()
  const month = search.month ?? monthNow()
  const isCurrent = month === monthNow()
  const isOrgWide = search.scope === 'organization'
  const grouping = readGrouping(search.by, isOrgWide)
  const { organization_id } = project
  const usageOf = (month: string) => {
    const query = { ...datesOf(month), group_by: groupBy(grouping) }
    return isOrgWide
      ? read('organizationUsage', { params: { organization_id }, query })
      : read('projectUsage', { params: { project_id: project.id }, query })
  }
  const usage = useQuery({ ...usageOf(month), placeholderData: keepPreviousData })
  const earlier = useQuery({ ...usageOf(monthBefore(month)), placeholderData: keepPreviousData })
  const costs = useQuery(
    isOrgWide
      ? read('organizationCosts', { params: { organization_id } })
      : read('projectCosts', { params: { project_id: project.id } }),
  )
  const budget = useQuery({
    ...read('budgetGet', { params: { project_id: project.id } }),
    enabled: !isOrgWide,
  })
  const items = usage.data?.items ?? noItems
  // A day is itemized after it ends. The current month is compared with the same days of the previous month.
  const updatedAt = usage.data?.updated_at ?? ''
  const itemizedDays = !isCurrent ? 31 : updatedAt.startsWith(month) ? Number(updatedAt.slice(8, 10)) - 1 : 0
  const before = useMemo(
    () => (earlier.data?.items ?? noItems).filter(({ date }) => Number(date.slice(8, 10)) <= itemizedDays),
    [earlier.data, itemizedDays],
  )
  const itemizedUsd = sumUsd(items)
  const beforeUsd = sumUsd(before)
  const current = costs.data?.as_of.startsWith(month) ? costs.data : undefined
  const soFarUsd = isCurrent ? current?.month_to_date_usd : itemizedUsd
  const unitemized = useMemo(
    () =>
      current
        ? {
            itemizedDays,
            laterUsd: Math.max(0, current.month_to_date_usd - current.today_usd - itemizedUsd),
            today: Number(current.as_of.slice(8, 10)),
            todayUsd: current.today_usd,
            todayLeft: 1 - (Date.parse(current.as_of) % dayMs) / dayMs,
          }
        : null,
    [current, itemizedDays, itemizedUsd],
  )
  const keyOf = useMemo(() => {
    const names = new Map(projects.map(({ id, name }) => [id, name]))
    return (item: UsageItem) => groupOf(item, grouping, names)
  }, [projects, grouping])
  const barOf = useMemo(() => withOthers(items, keyOf), [items, keyOf])
  const totals = useMemo(() => totalsOf(items, before, keyOf), [items, before, keyOf])
  const sums = sumsOf({ month, usd: itemizedUsd, usdBefore: beforeUsd, unitemized })
  // Before the first day is itemized, costs are known only by product.
  const products = totals.length === 0 && grouping === 'product' ? current?.by_product : undefined
  const lines = products?.map(({ product_name: key, usd }) => ({ key, usd, usdBefore: null })) ?? totals
  const isUnused = items.length === 0 && soFarUsd === 0 && !current?.usd_per_hour
  const download = async () => {
    try {
      const csv = await client.usageCsv({
        ...(isOrgWide ? { organization_id } : { project_id: project.id }),
        ...datesOf(month),
        group_by: groupBy(grouping),
      })
      const name = `slipway-usage-${isOrgWide ? 'all-projects' : project.name}-${month}.csv`
      saveText(name, csv, 'text/csv')
    } catch (error) {
      showToast({ title: 'Could not download the CSV', error: error as Error })
    }
  }
  return (
    <Page
      title="Usage"
      actions={
        <>
          <Select
            label="Month"
            isSmall
            value={month}
            onChange={(value) => setSearch({ month: value === monthNow() ? '' : value })}
            choices={lastMonths(12).map((value) => ({ value, label: monthText(value) }))}
          />
          <Select
            label="Scope"
            isSmall
            value={isOrgWide ? 'organization' : ''}
            onChange={(scope) => setSearch({ scope, by: search.by === 'project' ? '' : (search.by ?? '') })}
            choices={[
              { value: '', label: 'This project' },
              { value: 'organization', label: 'All projects' },
            ]}
          />
          <GroupingSelect
            projectId={project.id}
            isOrgWide={isOrgWide}
            value={grouping}
            onChange={(by) => setSearch({ by: by === 'product' ? '' : by })}
          />
          <Button size="small" icon={<Icon name="download" size={14} />} onClick={download}>
            CSV
          </Button>
        </>
      }
    >
      <Loaded query={usage} rows={8}>
        {(data) => (
          <>
            <div className="flex flex-wrap items-baseline gap-x-8 gap-y-1 max-sm:flex-col">
              <p className="figures text-2xl font-semibold">
                {soFarUsd === undefined ? '…' : money(soFarUsd)}
                <span className="text-base font-normal text-ink-muted max-sm:block">
                  {' '}
                  in {monthText(month)}
                  {isCurrent && ' so far'}
                </span>
              </p>
              {current && <p className="figures text-ink-muted">Forecast: {money(current.forecast_usd)}</p>}
              {earlier.data && itemizedDays > 0 && (
                <p className="figures text-ink-muted">
                  {money(beforeUsd)} in {daysText(monthBefore(month), 1, itemizedDays)}
                  {beforeUsd >= 0.005 &&
                    ` (${changeText(itemizedUsd, beforeUsd)}${isCurrent ? ' over the same days' : ''})`}
                </p>
              )}
            </div>
            {isUnused ? (
              <Empty
                title={`No usage in ${monthText(month)}${isCurrent ? ' yet' : ''}`}
                {...(isCurrent && {
                  action: <CreateVmButton />,
                  cli: 'slipway vm create train-7 --type a100.1x --location us-east1-a',
                })}
              >
                Costs of VMs and disks appear here within moments. They are itemized by{' '}
                {groupingText(grouping)} each day shortly after midnight UTC.
              </Empty>
            ) : (
              <>
                <div className="card p-4">
                  <Suspense fallback={<div role="status" aria-label="Loading" className="h-74" />}>
                    <Chart
                      items={items}
                      groupOf={barOf}
                      by={groupingText(grouping)}
                      month={month}
                      days={daysIn(month)}
                      unitemized={unitemized}
                      isItemizedInTable={products !== undefined}
                      forecastUsd={current?.forecast_usd ?? null}
                      budgetUsd={isOrgWide ? null : (budget.data?.monthly_usd ?? null)}
                    />
                  </Suspense>
                </div>
                <Totals
                  title={`By ${groupingText(grouping)}`}
                  rows={lines}
                  sums={products ? sums.slice(-1) : sums}
                  period={monthText(month)}
                  periodBefore={daysText(monthBefore(month), 1, itemizedDays)}
                  hasBefore={itemizedDays > 0 && !products}
                  hasQuantities={grouping === 'product' && !products}
                />
              </>
            )}
            {!isUnused && !products && (
              <p className="text-sm text-ink-muted" title={utcDate(data.updated_at)}>
                Each day is itemized by {groupingText(grouping)} shortly after midnight UTC.
                {data.updated_at && ` Last updated on ${localDate(data.updated_at, 'minutes', true)}.`}
              </p>
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}

const noItems: UsageItem[] = []

/** Offers product, VM, project, and the label keys of the project's VMs and disks. */
function GroupingSelect({
  projectId,
  isOrgWide,
  value,
  onChange,
}: {
  projectId: string
  isOrgWide: boolean
  value: Grouping
  onChange: (by: string) => void
}) {
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const disks = useQuery(readAll('diskList', { project_id: projectId }))
  const keys = useMemo(() => {
    const labeled = [...(vms.data ?? []), ...(disks.data ?? [])]
    return [...new Set(labeled.flatMap(({ labels }) => Object.keys(labels)))].sort()
  }, [vms.data, disks.data])
  const groupings: Grouping[] = [
    'product',
    'vm',
    ...(isOrgWide ? (['project'] as const) : []),
    ...keys.map((key) => `label:${key}` as const),
    value,
  ]
  return (
    <Select
      label="Group by"
      isSmall
      value={value}
      onChange={onChange}
      choices={[...new Set(groupings)].map((each) => ({ value: each, label: `By ${groupingText(each)}` }))}
    />
  )
}
