import type { ReactNode } from 'react'
import type { Column } from '../../ui/table.tsx'

/** Returns the first column of a table, in bold. */
export const nameColumn = <Row,>(title: string, nameOf: (row: Row) => ReactNode): Column<Row> => ({
  key: 'name',
  title,
  width: 'minmax(100px, 1fr)',
  cell: (row) => <span className="font-medium">{nameOf(row)}</span>,
})

/** Returns a column of counts. */
export const countColumn = <Row,>(
  title: string,
  countOf: (row: Row) => ReactNode,
  width = '80px',
): Column<Row> => ({
  key: title,
  title,
  width,
  align: 'right',
  cell: countOf,
})

const barColors = { amber: 'bg-amber', green: 'bg-green', grey: 'bg-grey' }

interface ShareBarProps {
  value: number
  tone: keyof typeof barColors
  text: string
}

/** A bar that shows a share from 0 to 1, with text. */
export function ShareBar({ value, tone, text }: ShareBarProps) {
  return (
    <span className="flex items-center gap-2 max-md:justify-end">
      <span className="h-1.5 w-20 overflow-hidden rounded-full bg-sunken">
        <span
          className={`block h-full ${barColors[tone]}`}
          style={{ width: `${Math.min(1, value) * 100}%` }}
        />
      </span>
      <span className="figures text-sm whitespace-nowrap text-ink-muted">{text}</span>
    </span>
  )
}
