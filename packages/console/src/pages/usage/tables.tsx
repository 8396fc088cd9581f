import { amount, quantity } from '../../lib/format.ts'
import { Section } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import type { GroupTotal } from './grouping.ts'

/** Shows what each group cost, and what it cost the month before. */
export function Totals({
  title,
  rows,
  monthBefore,
  hasQuantities = false,
}: {
  title: string
  rows: GroupTotal[]
  monthBefore: string
  /** Quantities of one group have one unit only where groups are products. */
  hasQuantities?: boolean
}) {
  const columns: Column<GroupTotal>[] = [
    {
      key: 'name',
      title: title.replace(/^By (.)/, (_, first) => first.toUpperCase()),
      width: 'minmax(140px, 2fr)',
      cell: (row) => row.key,
    },
    { key: 'usd', title: 'USD', width: '110px', align: 'right', cell: (row) => amount(row.usd) },
    {
      key: 'before',
      title: monthBefore,
      width: '130px',
      align: 'right',
      cell: (row) => <span className="text-ink-muted">{amount(row.usdBefore)}</span>,
    },
    {
      key: 'change',
      title: 'Change',
      width: '90px',
      align: 'right',
      cell: (row) => changeWords(row.usd, row.usdBefore),
    },
  ]
  if (hasQuantities)
    columns.splice(1, 0, {
      key: 'quantity',
      title: 'Quantity',
      width: 'minmax(130px, 1fr)',
      align: 'right',
      cell: (row) => quantity(row.quantity, row.unit),
    })
  return (
    <Section title={title}>
      <Table label={title} rows={rows} rowKey={(row) => row.key} columns={columns} />
    </Section>
  )
}

/** Returns "+12 %", or what can be said where nothing was before. */
export function changeWords(usd: number, before: number): string {
  if (before < 0.005) return usd < 0.005 ? '–' : 'new'
  const percent = Math.round((usd / before - 1) * 100)
  return `${percent > 0 ? '+' : percent < 0 ? '−' : ''}${Math.abs(percent)} %`
}
