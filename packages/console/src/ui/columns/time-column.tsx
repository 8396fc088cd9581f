import { zonedTitle } from '../../lib/format.ts'
import type { Column } from '../table.tsx'
import { Age, Timestamp } from '../time.tsx'

/** Returns the value by which a time is sorted: the newest time is the largest number, and no time is undefined. */
export const timeOf = (iso: string): number | undefined => (iso ? Date.parse(iso) : undefined)

/** Returns a column for a field with a timestamp. */
export const timestampColumn = <Member extends string>(
  title: string,
  member: Member,
): Column<Record<Member, string>> => ({
  key: member,
  title: zonedTitle(title),
  width: '190px',
  align: 'right',
  sortBy: (row) => timeOf(row[member]),
  cell: (row) => <Timestamp iso={row[member]} hasZone={false} />,
})

/** The age of each row since its creation. */
export const ageColumn: Column<{ created_at: string }> = {
  key: 'age',
  title: 'Age',
  width: '104px',
  align: 'right',
  isFoldable: true,
  sortBy: (row) => timeOf(row.created_at),
  cell: (row) => <Age iso={row.created_at} />,
}
