import type { Column } from '../table.tsx'
import { Age, Timestamp } from '../time.tsx'

/** Returns a column for a field with a timestamp. */
export const timestampColumn = <Member extends string>(
  title: string,
  member: Member,
): Column<Record<Member, string>> => ({
  key: member,
  title,
  width: '190px',
  align: 'right',
  cell: (row) => <Timestamp iso={row[member]} />,
})

/** The age of each row since its creation. */
export const ageColumn: Column<{ created_at: string }> = {
  key: 'age',
  title: 'Age',
  width: '104px',
  align: 'right',
  isFoldable: true,
  sortBy: (row) => -Date.parse(row.created_at),
  cell: (row) => <Age iso={row.created_at} />,
}
