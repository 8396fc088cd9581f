import type { Column } from './table.tsx'
import { When } from './time.tsx'

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
