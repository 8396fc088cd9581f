import { useMemo } from 'react'
import { zonedTitle } from '../../../lib/format.ts'
import { Section } from '../../../ui/page.tsx'
import { type Column, Table } from '../../../ui/table.tsx'
import { Timestamp } from '../../../ui/time.tsx'
import { type ChartLines, valueText } from './charts.ts'

/** The values of the charts as tables, newest first. */
export const MetricTables = ({ charts }: { charts: ChartLines[] }) =>
  charts.map((chart) => <MetricTable key={chart.title} chart={chart} />)

function MetricTable({ chart: { title, unit, times, lines } }: { chart: ChartLines }) {
  const rows = useMemo(() => times.map((_, index) => index).reverse(), [times])
  const columns = useMemo<Column<number>[]>(
    () => [
      {
        key: 'time',
        title: zonedTitle('Time'),
        width: 'minmax(150px, 1fr)',
        cell: (index) => <Timestamp iso={new Date(times[index]! * 1000).toISOString()} hasZone={false} />,
      },
      ...lines.map(
        ({ label, values }): Column<number> => ({
          key: label,
          title: label,
          width: 'minmax(96px, 1fr)',
          align: 'right',
          cell: (index) => valueText(values[index], unit),
        }),
      ),
    ],
    [times, lines, unit],
  )
  return (
    <Section title={title}>
      <Table label={title} rows={rows} columns={columns} rowKey={String} />
    </Section>
  )
}
