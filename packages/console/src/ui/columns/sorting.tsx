export type SortValue = string | number | undefined

/** What sorting needs of a column. */
interface SortedColumn<Row> {
  key: string
  title: string
  align?: 'right'
  sortBy?: (row: Row) => SortValue
}

/** Returns the rows in the order of a column. Rows without a value are last. */
export function sortedBy<Row>(rows: Row[], columns: SortedColumn<Row>[], sort: string): Row[] {
  const sortBy = columns.find(({ key }) => key === sort.replace(/^-/, ''))?.sortBy
  if (!sortBy) return rows
  const sign = sort.startsWith('-') ? -1 : 1
  const compare = (a: SortValue, b: SortValue) => {
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
    if (typeof a === 'number' && typeof b === 'number') return sign * (a - b)
    return sign * String(a).localeCompare(String(b), 'en', { numeric: true })
  }
  return rows
    .map((row) => ({ row, by: sortBy(row) }))
    .toSorted((a, b) => compare(a.by, b.by))
    .map(({ row }) => row)
}

/** Cycles through both directions and unsorted. Numeric columns start with the largest value. */
export function nextSort<Row>({ key, align }: SortedColumn<Row>, sort: string): string {
  const [first, second] = align === 'right' ? [`-${key}`, key] : [key, `-${key}`]
  return sort === first ? second : sort === second ? '' : first
}

/** The choices of a list that replaces the headers by which a table is sorted. */
export const sortChoices = <Row,>(columns: SortedColumn<Row>[]): { value: string; label: string }[] => [
  // The API lists the newest first.
  { value: '', label: 'Newest first' },
  ...columns
    .filter(({ sortBy }) => sortBy)
    .flatMap(({ key, title }) => [
      { value: key, label: `${title}, ascending` },
      { value: `-${key}`, label: `${title}, descending` },
    ]),
]

/** An arrow that shows whether and how a sortable column is sorted. It is not part of the text. */
export const SortMark = ({ isOn, isUp }: { isOn: boolean; isUp: boolean }) => (
  <span
    aria-hidden="true"
    data-mark={isOn ? (isUp ? '↑' : '↓') : '↕'}
    className={`ml-1 after:content-[attr(data-mark)] ${isOn ? 'text-ink' : 'opacity-50 group-hover:opacity-100'}`}
  />
)
