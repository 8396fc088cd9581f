import type { Column } from './table.tsx'
import { Age, When } from './time.tsx'

/** Returns the column of a timestamp, by the name of its member. */
export const whenColumn = <Member extends string>(
  title: string,
  member: Member,
): Column<Record<Member, string>> => ({
  key: member,
  title,
  width: '190px',
  align: 'right',
  cell: (row) => <When iso={row[member]} />,
})

/** The column of how long ago each was created. */
export const ageColumn: Column<{ created_at: string }> = {
  key: 'age',
  title: 'Age',
  width: '104px',
  align: 'right',
  isFoldable: true,
  sortBy: (row) => -Date.parse(row.created_at),
  cell: (row) => <Age iso={row.created_at} />,
}
