// biome-ignore-all lint/a11y/useSemanticElements: a grid of absolutely placed rows cannot be a <table>
// biome-ignore-all lint/a11y/useFocusableInteractive: rows and headers are not controls here
import { useVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, memo, type ReactNode, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { minPx, needsLine, useFolding } from './columns/folded-columns.ts'
import { useScrollEdges } from './columns/scroll-edges.ts'
import { nextSort, SortMark, type SortValue, sortChoices, sortedBy } from './columns/sorting.tsx'
import { Select } from './field.tsx'

export interface Column<Row> {
  key: string
  /** Empty for the column of buttons. Screen readers announce its header as "Actions". */
  title: string
  /** Cards omit a cell without content: null, false, an empty string, or `noValue`. */
  cell: (row: Row) => ReactNode
  /** A CSS grid track, such as `minmax(140px, 2fr)`. */
  width: string
  align?: 'right'
  /** Returns the value by which the table can be sorted. Rows without a value are last in both directions. */
  sortBy?: (row: Row) => SortValue
  /** True for the column of buttons: the last column, sticky, with a width in pixels. */
  isActions?: boolean
  /** True if the card on narrow screens has the column in its title, after the first column. */
  isInTitle?: boolean
  /** True if the column is among the first to move below the row, in small text, when the table is too narrow. */
  isFoldable?: boolean
}

interface TableProps<Row> {
  /** Replaces a table without rows. */
  empty?: ReactNode
  label: string
  rows: Row[]
  columns: Column<Row>[]
  rowKey: (row: Row) => string
  /** Rows that stay at the end, such as totals. The last one is bold. */
  foot?: Row[]
  /** The key of the column to sort by, with a leading minus for descending order. */
  sort?: string
  onSort?: (sort: string) => void
  /** False if the rows are too few to choose an order where headers are missing. */
  hasSortChoice?: boolean
  selected?: ReadonlySet<string>
  onSelect?: (selected: Set<string>) => void
  /** The name of a row, for the label of its checkbox. */
  rowName?: (row: Row) => string
  /** Returns what is shown below a row, for example its details; nothing if the row is closed. */
  below?: (row: Row) => ReactNode
}

/** The cell of a row that has no value in this column. */
export const noValue = '–'
const isBlank = (content: ReactNode) => content === null || content === '' || content === false

/** Cards do not fold columns. */
const none: Column<unknown>[] = []
const rowPx = 36
const foldedLinePx = 26
const boxPx = 36
/** Shorter tables render all rows, so that the browser's search finds them. */
const virtualFrom = 200

/** A table for up to ten thousand rows. On narrow screens, each row is a card. */
export function Table<Row>({ empty, ...props }: TableProps<Row>) {
  const { rows, columns, sort = '' } = props
  const sorted = useMemo(() => sortedBy(rows, columns, sort), [rows, columns, sort])
  return rows.length === 0 && empty ? empty : <Rows {...props} rows={sorted} />
}

function Rows<Row>(props: TableProps<Row>) {
  const { label, rows, columns, rowKey, foot = [], selected, onSelect, sort = '', onSort } = props
  const { hasSortChoice = true } = props
  const frame = useRef<HTMLDivElement>(null)
  const isNarrow = useIsNarrow()
  const { shown, folded } = useFolding<Column<Row>>(frame, isNarrow ? none : columns, onSelect ? boxPx : 0)
  const isVirtual = rows.length > virtualFrom
  const virtual = useVirtualizer({
    count: isVirtual ? rows.length : 0,
    getScrollElement: () => frame.current,
    estimateSize: () =>
      isNarrow ? 28 + 24 * (columns.length - 1) + 16 : rowPx + (folded.length > 0 ? foldedLinePx : 0),
    overscan: 12,
  })
  // Rows and cards have different heights, so measure them again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the layout changes
  useLayoutEffect(() => {
    virtual.measure()
    for (const row of virtual.elementsCache.values()) virtual.measureElement(row)
  }, [isNarrow, folded.length])
  const tracks = [...(onSelect ? [`${boxPx}px`] : []), ...shown.map((column) => column.width)].join(' ')
  const renderRow = (row: Row, index: number, top: number | null) => (
    <TableRow
      key={rowKey(row)}
      {...props}
      columns={isNarrow ? columns : shown}
      folded={folded}
      row={row}
      index={index}
      tracks={tracks}
      isNarrow={isNarrow}
      top={top}
      measure={virtual.measureElement}
    />
  )
  useScrollEdges(frame)
  const pinned = isNarrow ? undefined : columns.find(({ isActions }) => isActions)?.width
  // Cards and folded columns have no header that sorts.
  const hiddenSorts = (isNarrow ? columns : folded).filter(({ sortBy }) => sortBy)
  const selectedCount = rows.filter((row) => selected?.has(rowKey(row))).length
  const allSelected = rows.length > 0 && selectedCount === rows.length
  const selectAll = onSelect && (
    <input
      type="checkbox"
      aria-label="Select all"
      ref={(box) => {
        if (box) box.indeterminate = selectedCount > 0 && !allSelected
      }}
      checked={allSelected}
      onChange={(event) => onSelect(new Set(event.target.checked ? rows.map(rowKey) : []))}
    />
  )
  const hasSort = onSort && hasSortChoice && hiddenSorts.length > 0 && rows.length > 1
  const hasSelectAll = isNarrow && selectAll && rows.length > 1
  return (
    <div
      data-scrolls={isVirtual ? '' : undefined}
      className={`card flex min-h-0 flex-col overflow-hidden ${isVirtual ? 'max-h-[calc(100dvh-270px)]' : ''}`}
    >
      {(hasSort || hasSelectAll) && (
        <div className="flex items-center justify-end gap-2 border-b border-line px-3 py-1 text-sm text-ink-muted">
          {hasSelectAll && (
            // biome-ignore lint/a11y/noLabelWithoutControl: `selectAll` is the control
            <label className="mr-auto flex items-center gap-2">{selectAll} All</label>
          )}
          {hasSort && (
            <>
              Sort by
              <Select
                isSmall
                label={`Sort ${label} by`}
                value={sort}
                onChange={onSort}
                choices={sortChoices(columns)}
              />
            </>
          )}
        </div>
      )}
      <div
        role="table"
        aria-label={label}
        aria-rowcount={rows.length + foot.length + 1}
        className="cut-edges flex min-h-0 flex-col"
        style={{ '--pinned': pinned } as CSSProperties}
      >
        <div
          ref={frame}
          // Scroll focused elements out from under the pinned column.
          className={`scroll-pr-(--pinned,0px) ${isVirtual ? 'overflow-auto' : 'overflow-x-auto'}`}
        >
          {!isNarrow && (
            <div
              role="row"
              className="sticky top-0 z-10 grid h-9 min-w-fit items-center border-b border-line bg-surface text-sm text-ink-muted"
              style={{ gridTemplateColumns: tracks }}
            >
              {onSelect && (
                <span role="columnheader" className="flex justify-center">
                  {selectAll}
                </span>
              )}
              {shown.map((column) => (
                <span
                  key={column.key}
                  role="columnheader"
                  aria-sort={
                    sort === column.key ? 'ascending' : sort === `-${column.key}` ? 'descending' : undefined
                  }
                  className={`truncate px-3 font-normal ${column.align === 'right' ? 'text-right' : ''} ${column.isActions ? pinnedLook : ''}`}
                >
                  {column.sortBy && onSort ? (
                    <button
                      type="button"
                      className="group hover:text-ink"
                      onClick={() => onSort(nextSort(column, sort))}
                    >
                      {column.title}
                      <SortMark isOn={sort.replace(/^-/, '') === column.key} isUp={!sort.startsWith('-')} />
                    </button>
                  ) : (
                    column.title || <span className="sr-only">Actions</span>
                  )}
                </span>
              ))}
            </div>
          )}
          <div
            role="rowgroup"
            className={isVirtual ? 'relative' : ''}
            style={isVirtual ? { height: virtual.getTotalSize() } : undefined}
          >
            {isVirtual
              ? virtual.getVirtualItems().map((item) => renderRow(rows[item.index]!, item.index, item.start))
              : rows.map((row, index) => renderRow(row, index, null))}
          </div>
          {foot.length > 0 && (
            <div
              role="rowgroup"
              className="sticky bottom-0 border-t border-line-strong bg-surface *:last:font-semibold"
            >
              {foot.map((row, index) => renderRow(row, rows.length + index, null))}
            </div>
          )}
        </div>
      </div>
    </div>
  )
}

type RowProps<Row> = TableProps<Row> & {
  row: Row
  folded: Column<Row>[]
  index: number
  tracks: string
  isNarrow: boolean
  top: number | null
  measure: (element: HTMLElement | null) => void
}

/** A column with only a menu is narrow enough for the title of a card. */
const isInTitle = <Row,>({ isInTitle, isActions, width }: Column<Row>): boolean =>
  Boolean(isInTitle || (isActions && minPx(width) <= 60))

/** A pinned cell is opaque and fills the height of the row. */
const pinnedLook = 'sticky right-0 z-1 flex items-center justify-end self-stretch bg-inherit'

/** Memoized, so that scrolling does not render visible rows again. */
const TableRow = memo(PlainRow) as typeof PlainRow

function PlainRow<Row>({
  row,
  index,
  columns,
  folded,
  rowKey,
  selected,
  onSelect,
  rowName,
  tracks,
  isNarrow,
  top,
  measure,
  below,
}: RowProps<Row>) {
  const details = below?.(row)
  const isSelected = selected?.has(rowKey(row)) ?? false
  const toggle = (isChosen: boolean) => {
    const next = new Set(selected)
    if (isChosen) next.add(rowKey(row))
    else next.delete(rowKey(row))
    onSelect?.(next)
  }
  const box = onSelect && (
    <input
      type="checkbox"
      aria-label={`Select ${rowName?.(row) ?? rowKey(row)}`}
      checked={isSelected}
      onChange={(event) => toggle(event.target.checked)}
    />
  )
  const place = top === null ? '' : 'absolute inset-x-0'
  const look = `border-b border-line last:border-b-0 ${isSelected ? 'bg-accent-soft' : 'bg-surface hover:bg-hover'} ${place}`
  const style = { ...(top !== null && { transform: `translateY(${top}px)` }) }
  const measured = top === null ? {} : { ref: measure, 'data-index': index }
  const spans = folded.length > 0 ? 'row-span-2' : ''
  const [first, ...rest] = columns
  if (isNarrow && first) {
    return (
      <div
        role="row"
        {...measured}
        aria-rowindex={index + 2}
        className={`flex flex-col gap-1 px-3 py-2 ${look}`}
        style={style}
      >
        <div role="cell" className="flex items-center gap-2 font-medium">
          {box}
          <span className="min-w-0 flex-1 wrap-anywhere">{first.cell(row)}</span>
          {rest.map(
            (column) =>
              isInTitle(column) && (
                <span key={column.key} className="text-sm font-normal text-ink-muted">
                  {column.cell(row)}
                </span>
              ),
          )}
        </div>
        {rest.map((column) => {
          if (isInTitle(column)) return null
          const content = column.cell(row)
          if (isBlank(content) || content === noValue) return null
          return (
            <div
              key={column.key}
              role="cell"
              className={`flex min-w-0 items-baseline justify-between gap-4 text-sm ${column.isActions ? '[&:not(:has(a,button))]:hidden' : ''}`}
            >
              <span className="shrink-0 font-normal text-ink-muted">
                {column.isActions ? '' : column.title}
              </span>
              <span className="min-w-0 text-right wrap-anywhere">{content}</span>
            </div>
          )
        })}
        {details && <div role="cell">{details}</div>}
      </div>
    )
  }
  return (
    <div
      role="row"
      {...measured}
      aria-rowindex={index + 2}
      className={`grid min-h-9 min-w-fit items-center ${look}`}
      style={{ gridTemplateColumns: tracks, ...style }}
    >
      {box && (
        <span role="cell" className={`flex justify-center ${spans}`}>
          {box}
        </span>
      )}
      {columns.map((column) => (
        <span
          key={column.key}
          role="cell"
          // Long names wrap, because names often differ at their end. Numbers do not wrap.
          className={`min-w-0 overflow-hidden px-3 py-1.5 wrap-anywhere ${column.align === 'right' ? 'figures text-right whitespace-nowrap' : ''} ${column.isActions ? pinnedLook : ''}`}
        >
          {column.cell(row)}
        </span>
      ))}
      {folded.length > 0 && <FoldedCells row={row} columns={folded} from={box ? 2 : 1} />}
      {details && (
        <div role="cell" className="col-span-full min-w-0 px-3 pt-1 pb-3">
          {details}
        </div>
      )}
    </div>
  )
}

interface FoldedCellsProps<Row> {
  row: Row
  columns: Column<Row>[]
  /** The grid line at which the cells begin. */
  from: number
}

function FoldedCells<Row>({ row, columns, from }: FoldedCellsProps<Row>) {
  return (
    <span
      role="cell"
      // Equal tracks, so that the cells of all rows and lines are aligned.
      className="-mt-0.5 grid min-w-0 grid-cols-[repeat(auto-fill,minmax(190px,1fr))] items-baseline gap-x-4 px-3 pb-1.5 text-sm text-ink-muted"
      style={{ gridColumn: `${from} / -1` }}
    >
      {columns.map((column) => {
        const content = column.cell(row)
        // A cell without content keeps its space, so that the cells of all rows are aligned.
        return (
          <span
            key={column.key}
            className={`flex min-w-0 items-baseline gap-1.5 ${needsLine(column) ? 'col-span-full' : ''}`}
          >
            {!isBlank(content) && (
              <>
                <span className="whitespace-nowrap">{column.title}</span>
                <span
                  className={`min-w-0 text-ink ${column.align === 'right' ? 'figures whitespace-nowrap' : 'wrap-anywhere'}`}
                >
                  {content}
                </span>
              </>
            )}
          </span>
        )
      })}
    </span>
  )
}

const narrow = matchMedia('(max-width: 767px)')

function useIsNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(narrow.matches)
  useLayoutEffect(() => {
    const listen = () => setNarrow(narrow.matches)
    narrow.addEventListener('change', listen)
    return () => narrow.removeEventListener('change', listen)
  }, [])
  return isNarrow
}
