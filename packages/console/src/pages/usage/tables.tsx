import { amount, percent } from '../../lib/format.ts'
import { costAmount, quantity } from '../../lib/units/quantity.ts'
import { Section } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import type { UsageRow } from './grouping.ts'

/** The cost of each group, compared with the previous month, and the sums. */
export function Totals({
  title,
  rows,
  sums,
  period,
  periodBefore,
  hasBefore,
  hasQuantities = false,
}: {
  title: string
  rows: UsageRow[]
  sums: UsageRow[]
  period: string
  periodBefore: string
  /** True if there is a previous period to compare with. */
  hasBefore: boolean
  /** Only products have quantities with a single unit. */
  hasQuantities?: boolean
}) {
  // The titles of cards do not inherit the weight of the total.
  const weightOf = (row: UsageRow) => (row === sums.at(-1) ? 'font-semibold' : '')
  const before: Column<UsageRow>[] = [
    {
      key: 'before',
      title: `${periodBefore} (USD)`,
      width: '210px',
      align: 'right',
      cell: ({ usdBefore }) =>
        usdBefore !== null && <span className="font-normal text-ink-muted">{amount(usdBefore)}</span>,
    },
    {
      key: 'change',
      title: 'Change',
      width: '90px',
      align: 'right',
      cell: ({ usd, usdBefore }) => usdBefore !== null && changeText(usd, usdBefore),
    },
  ]
  const columns: Column<UsageRow>[] = [
    {
      key: 'name',
      title: title.replace(/^By (.)/, (_, first) => first.toUpperCase()),
      width: 'minmax(140px, 2fr)',
      cell: (row) => <span className={weightOf(row)}>{row.key}</span>,
    },
    {
      key: 'usd',
      title: `${period} (USD)`,
      width: '180px',
      align: 'right',
      isInTitle: true,
      cell: (row) => (
        <span className={`text-ink ${weightOf(row)}`}>
          {costAmount(row.usd)}
          {/* Cards have no column titles with the unit. */}
          <span className="md:hidden"> USD</span>
        </span>
      ),
    },
    ...(hasBefore ? before : []),
  ]
  if (hasQuantities)
    columns.splice(1, 0, {
      key: 'quantity',
      title: 'Quantity',
      width: 'minmax(130px, 1fr)',
      align: 'right',
      cell: ({ quantity: value, unit = '' }) => value !== undefined && quantity(value, unit),
    })
  return (
    <Section title={title}>
      <Table label={title} rows={rows} rowKey={(row) => row.key} columns={columns} foot={sums} />
      {isRounded(rows) && (
        <p className="text-sm text-ink-muted">Amounts are rounded, so they may not add up to the total.</p>
      )}
    </Section>
  )
}

const cents = (usd: number): number => Math.round(usd * 100)
const isRounded = (rows: UsageRow[]): boolean =>
  rows.reduce((sum, { usd }) => sum + cents(usd), 0) !== cents(rows.reduce((sum, { usd }) => sum + usd, 0))

/** Returns "+12%", or "new" if there was no cost before. */
export function changeText(usd: number, before: number): string {
  if (before < 0.005) return usd < 0.005 ? '–' : 'new'
  const change = Math.round((usd / before - 1) * 100) / 100
  return `${change > 0 ? '+' : change < 0 ? '−' : ''}${percent(Math.abs(change))}`
}
