import type { UsageItem } from '@slipway/sdk'
import { keepPreviousData } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { lazy, Suspense, useMemo } from 'react'
import { client } from '../api/client.ts'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { useMe, useProject } from '../app/me.ts'
import { localDate, money, quantity, usd, utcDate } from '../lib/format.ts'
import { useSearchState } from '../lib/use-search.ts'
import { Button } from '../ui/button.tsx'
import { Select } from '../ui/field.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Empty, Page, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { showResult } from '../ui/toast.tsx'

const Chart = lazy(() => import('./usage/chart.tsx'))

/** Months are UTC months, as the daily rows are UTC days. */
const monthNow = () => new Date().toISOString().slice(0, 7)

function lastMonths(number: number): string[] {
  const now = new Date()
  return Array.from({ length: number }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  )
}

const daysIn = (month: string): number => {
  const [year, number] = month.split('-').map(Number)
  return new Date(Date.UTC(year!, number!, 0)).getUTCDate()
}

export function Usage() {
  const project = useProject()
  const { projects } = useMe()
  const [search, setSearch] = useSearchState()
  const month = search.month ?? monthNow()
  const isWhole = search.scope === 'organization'
  const dates = { start_date: `${month}-01`, end_date: `${month}-${String(daysIn(month)).padStart(2, '0')}` }
  const usage = useQuery({
    ...(isWhole
      ? read('organizationUsage', { params: { organization_id: project.organization_id }, query: dates })
      : read('projectUsage', { params: { project_id: project.id }, query: dates })),
    placeholderData: keepPreviousData,
  })
  const costs = useQuery(
    isWhole
      ? read('organizationCosts', { params: { organization_id: project.organization_id } })
      : read('projectCosts', { params: { project_id: project.id } }),
  )
  const items = usage.data?.items ?? []
  const isCurrent = month === monthNow()
  const download = async () => {
    try {
      const csv = await client.usageCsv({ project_id: project.id, ...dates })
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([csv], { type: 'text/csv' }))
      link.download = `slipway-usage-${project.name}-${month}.csv`
      link.click()
      URL.revokeObjectURL(link.href)
    } catch (error) {
      showResult({ title: 'The CSV could not be read', error: error as Error })
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
            choices={lastMonths(12).map((value) => ({ value, label: value }))}
          />
          <Select
            label="Scope"
            isSmall
            value={isWhole ? 'organization' : ''}
            onChange={(scope) => setSearch({ scope })}
            choices={[
              { value: '', label: 'This project' },
              { value: 'organization', label: 'All projects' },
            ]}
          />
          <Button size="small" icon={<Download size={14} />} onClick={download}>
            CSV
          </Button>
        </>
      }
    >
      <Loaded query={usage} rows={8}>
        {(data) => (
          <>
            <div className="flex flex-wrap items-baseline gap-x-8 gap-y-1">
              <p className="figures text-2xl font-semibold">
                {money(sum(items))}
                <span className="text-base font-normal text-ink-muted"> in whole days of {month}</span>
              </p>
              {isCurrent && costs.data && (
                <p className="figures text-ink-muted">
                  {money(costs.data.month_to_date_usd)} with today · {money(costs.data.forecast_usd)} expected
                  for the month
                </p>
              )}
            </div>
            {items.length === 0 && !isCurrent ? (
              <Empty title={`Nothing was used in ${month}`}>
                Days appear here shortly after midnight UTC.
              </Empty>
            ) : (
              <>
                <div className="card p-4">
                  <Suspense fallback={<div className="h-64" />}>
                    <Chart
                      items={items}
                      month={month}
                      days={daysIn(month)}
                      forecastUsd={isCurrent ? (costs.data?.forecast_usd ?? null) : null}
                    />
                  </Suspense>
                </div>
                <Tables
                  items={items}
                  projectNames={new Map(projects.map(({ id, name }) => [id, name]))}
                  isWhole={isWhole}
                />
              </>
            )}
            <p className="text-sm text-ink-muted" title={utcDate(data.updated_at)}>
              Whole UTC days, written shortly after midnight UTC
              {data.updated_at && `; last ${localDate(data.updated_at)}`}.
            </p>
          </>
        )}
      </Loaded>
    </Page>
  )
}

const sum = (items: UsageItem[]): number => items.reduce((total, item) => total + (item.usd ?? 0), 0)

interface Total {
  key: string
  quantity: number
  unit: string
  usd: number
}

function totalsBy(items: UsageItem[], keyOf: (item: UsageItem) => string): Total[] {
  const totals = new Map<string, Total>()
  for (const item of items) {
    const key = keyOf(item)
    const total = totals.get(key) ?? { key, quantity: 0, unit: item.unit, usd: 0 }
    total.quantity += item.quantity
    total.usd += item.usd ?? 0
    totals.set(key, total)
  }
  return [...totals.values()].sort((a, b) => b.usd - a.usd)
}

function Tables({
  items,
  projectNames,
  isWhole,
}: {
  items: UsageItem[]
  projectNames: Map<string, string>
  isWhole: boolean
}) {
  const byProduct = useMemo(() => totalsBy(items, (item) => item.product_name), [items])
  const byProject = useMemo(
    () => totalsBy(items, (item) => projectNames.get(item.project_id) ?? item.project_id),
    [items, projectNames],
  )
  if (items.length === 0)
    return <p className="text-ink-muted">No whole day of this month has been written yet.</p>
  return (
    <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
      <Section title="By product">
        <Table
          label="By product"
          rows={byProduct}
          rowKey={(row) => row.key}
          columns={[
            { key: 'product', title: 'Product', width: 'minmax(120px, 1.4fr)', cell: (row) => row.key },
            {
              key: 'quantity',
              title: 'Quantity',
              width: 'minmax(130px, 1fr)',
              align: 'right',
              cell: (row) => quantity(row.quantity, row.unit),
            },
            { key: 'usd', title: 'Amount', width: '130px', align: 'right', cell: (row) => usd(row.usd) },
          ]}
        />
      </Section>
      {isWhole && (
        <Section title="By project">
          <Table
            label="By project"
            rows={byProject}
            rowKey={(row) => row.key}
            columns={[
              { key: 'project', title: 'Project', width: 'minmax(140px, 2fr)', cell: (row) => row.key },
              { key: 'usd', title: 'Amount', width: '130px', align: 'right', cell: (row) => usd(row.usd) },
            ]}
          />
        </Section>
      )}
    </div>
  )
}
