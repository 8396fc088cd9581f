import type { UsageItem } from '@slipway/sdk'
import { keepPreviousData } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { lazy, Suspense, useMemo } from 'react'
import { client } from '../../api/client.ts'
import { useMe, useProject } from '../../api/me.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { localDate, money, utcDate } from '../../lib/format.ts'
import { daysIn, lastMonths, monthNow, monthWords } from '../../lib/months.ts'
import { showToast } from '../../lib/toasts.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { Select } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { Tables } from './tables.tsx'

const Chart = lazy(() => import('./chart.tsx'))

const productOf = (item: UsageItem) => item.product_name

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
  const isByProject = isWhole && search.by === 'project'
  const projectOf = useMemo(() => {
    const names = new Map(projects.map(({ id, name }) => [id, name]))
    return (item: UsageItem) => names.get(item.project_id) ?? item.project_id
  }, [projects])
  const isCurrent = month === monthNow()
  const download = async () => {
    try {
      const csv = await client.usageCsv({
        ...(isWhole ? { organization_id: project.organization_id } : { project_id: project.id }),
        ...dates,
      })
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([csv], { type: 'text/csv' }))
      link.download = `slipway-usage-${isWhole ? 'all-projects' : project.name}-${month}.csv`
      link.click()
      URL.revokeObjectURL(link.href)
    } catch (error) {
      showToast({ title: 'The CSV could not be read', error: error as Error })
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
            choices={lastMonths(12).map((value) => ({ value, label: monthWords(value) }))}
          />
          <Select
            label="Scope"
            isSmall
            value={isWhole ? 'organization' : ''}
            onChange={(scope) => setSearch({ scope, by: '' })}
            choices={[
              { value: '', label: 'This project' },
              { value: 'organization', label: 'All projects' },
            ]}
          />
          {isWhole && (
            <Select
              label="Bars by"
              isSmall
              value={isByProject ? 'project' : ''}
              onChange={(by) => setSearch({ by })}
              choices={[
                { value: '', label: 'By product' },
                { value: 'project', label: 'By project' },
              ]}
            />
          )}
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
                <span className="text-base font-normal text-ink-muted max-sm:block">
                  {' '}
                  in whole days of {monthWords(month)}
                </span>
              </p>
              {isCurrent && costs.data && (
                <p className="figures text-ink-muted">
                  {money(costs.data.month_to_date_usd)} with today · {money(costs.data.forecast_usd)} expected
                  for the month
                </p>
              )}
            </div>
            {items.length === 0 && !isCurrent ? (
              <Empty title={`Nothing was used in ${monthWords(month)}`}>
                Days appear here shortly after midnight UTC.
              </Empty>
            ) : (
              <>
                <div className="card p-4">
                  <Suspense fallback={<div className="h-76" />}>
                    <Chart
                      items={items}
                      groupOf={isByProject ? projectOf : productOf}
                      by={isByProject ? 'project' : 'product'}
                      month={month}
                      days={daysIn(month)}
                      todayUsd={isCurrent && costs.data ? costs.data.month_to_date_usd - sum(items) : null}
                      forecastUsd={isCurrent ? (costs.data?.forecast_usd ?? null) : null}
                    />
                  </Suspense>
                </div>
                <Tables items={items} projectOf={projectOf} isWhole={isWhole} />
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
