import type { BillingDashboard } from '@slipway/contract'
import { isApiError } from '@slipway/sdk'
import { keepPreviousData } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { readDashboard } from '../../api/billing-link.ts'
import { useQuery } from '../../api/use-query.ts'
import { PublicFrame } from '../../features/public-frame.tsx'
import { amount, money, plural, usd } from '../../lib/format.ts'
import { daysIn, monthAfter, monthBefore, monthText } from '../../lib/months.ts'
import { costAmount } from '../../lib/units/quantity.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Section, useTitle } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { LinkEnded } from './invoice.tsx'
import { PaymentMethodSection } from './payment-method.tsx'

const chart = import('../usage/chart.tsx')
chart.catch(() => {})
const Chart = lazy(() => chart)

/** The billing dashboard. It opens from a link and needs no session. */
export function BillingDashboardPage() {
  const { token = '' } = useParams({ strict: false })
  const [search, setSearch] = useSearchState()
  const query = useQuery({
    ...readDashboard(token, search.month ?? ''),
    placeholderData: keepPreviousData,
  })
  useTitle(`Billing · ${query.data?.organization_name ?? 'Slipway'}`)
  if (isApiError(query.error) && query.error.code === 'not_found') return <LinkEnded />
  return (
    <PublicFrame aside={query.data && <Aside board={query.data} />}>
      <Loaded query={query} rows={12}>
        {(board) => (
          <>
            <h1 className="text-xl font-semibold wrap-anywhere">
              {board.organization_name}
              {board.project_name && ` / ${board.project_name}`}
            </h1>
            <div className="grid items-start gap-4 md:grid-cols-2">
              <MonthSection board={board} />
              <PaymentMethodSection token={token} board={board} />
            </div>
            <DailyCosts
              board={board}
              month={search.month ?? board.current_month}
              onMonth={(month) => setSearch({ month })}
            />
            {!board.project_name && <Invoices token={token} board={board} />}
          </>
        )}
      </Loaded>
    </PublicFrame>
  )
}

function Aside({ board: { minutes_left, console_path } }: { board: BillingDashboard }) {
  return (
    <span className="flex flex-wrap gap-x-4 text-sm">
      <span className="text-ink-muted">This link works for {plural(minutes_left, 'more minute')}</span>
      {/* A full page load, so that the console reads its session again. */}
      <a href={console_path} className="link">
        Back to the console
      </a>
    </span>
  )
}

const MonthSection = ({ board: { costs, current_month } }: { board: BillingDashboard }) => (
  <section aria-label="This month so far" className="card flex flex-col gap-1 p-4">
    <h2 className="text-ink-muted">{monthText(current_month)} so far</h2>
    <div className="figures text-2xl font-semibold">{money(costs.month_to_date_usd)}</div>
    <p className="figures text-ink-muted">Forecast for the month: {money(costs.forecast_usd)}</p>
    <p className="figures text-ink-muted">Current cost: {usd(costs.usd_per_hour)} per hour</p>
  </section>
)

interface DailyCostsProps {
  board: BillingDashboard
  month: string
  onMonth: (month: string) => void
}

function DailyCosts({ board: { usage, current_month }, month, onMonth }: DailyCostsProps) {
  const products = new Map<string, number>()
  for (const { product_name, usd } of usage)
    products.set(product_name, (products.get(product_name) ?? 0) + (usd ?? 0))
  const rows = [...products].map(([name, usd]) => ({ name, usd })).toSorted((a, b) => b.usd - a.usd)
  const total = rows.reduce((sum, { usd }) => sum + usd, 0)
  return (
    <Section
      title="Daily cost"
      actions={
        <>
          <Button size="small" onClick={() => onMonth(monthBefore(month))}>
            <span aria-hidden="true">‹</span>
            {monthText(monthBefore(month))}
          </Button>
          {month < current_month && (
            <Button
              size="small"
              onClick={() => onMonth(monthAfter(month) === current_month ? '' : monthAfter(month))}
            >
              {monthText(monthAfter(month))}
              <span aria-hidden="true">›</span>
            </Button>
          )}
        </>
      }
    >
      {rows.length === 0 ? (
        <p className="card px-4 py-3 text-ink-muted">No usage in {monthText(month)}.</p>
      ) : (
        <>
          <div className="card p-4">
            <Suspense fallback={<div role="status" aria-label="Loading" className="h-74" />}>
              <Chart
                items={usage}
                groupOf={({ product_name }) => product_name}
                by="product"
                month={month}
                days={daysIn(month)}
                unitemized={null}
                isItemizedInTable
                forecastUsd={null}
                budgetUsd={null}
              />
            </Suspense>
          </div>
          <Table
            label="Cost by product"
            rows={rows}
            foot={[{ name: 'Total', usd: total }]}
            rowKey={({ name }) => name}
            columns={[
              { key: 'product', title: 'Product', width: 'minmax(140px, 1fr)', cell: ({ name }) => name },
              {
                key: 'usd',
                title: 'USD',
                width: '140px',
                align: 'right',
                cell: ({ usd }) => costAmount(usd),
              },
            ]}
          />
        </>
      )}
    </Section>
  )
}

/**
 * The current month shows the same amount as above. The lines of its invoice are rounded to cents, so their sum can
 * differ from the cost so far.
 */
function Invoices({ token, board: { invoices, costs } }: { token: string; board: BillingDashboard }) {
  return (
    <Section title="Invoices">
      <Table
        label="Invoices"
        rows={invoices}
        rowKey={({ id }) => id}
        empty={
          <p className="card px-4 py-3 text-ink-muted">
            No invoices yet. The first invoice is issued at the end of the month.
          </p>
        }
        columns={[
          {
            key: 'month',
            title: 'Month',
            width: 'minmax(140px, 1fr)',
            cell: ({ id, period_start }) => (
              <Link
                to="/billing/$token/invoices/$invoiceId"
                params={{ token, invoiceId: id }}
                className="link"
              >
                {monthText(period_start.slice(0, 7))}
              </Link>
            ),
          },
          {
            key: 'state',
            title: 'State',
            width: '120px',
            cell: ({ state }) => <StateBadge state={state === 'issued' ? 'due' : state} />,
          },
          {
            key: 'usd',
            title: 'USD',
            width: '140px',
            align: 'right',
            cell: ({ state, usd }) =>
              state === 'open' ? `${amount(costs.month_to_date_usd)} so far` : amount(usd),
          },
        ]}
      />
    </Section>
  )
}
