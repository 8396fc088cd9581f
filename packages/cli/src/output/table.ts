import type { Palette } from './colors.ts'

export interface Cell {
  text: string
  /** Applied after the layout, which needs the length of the plain text. */
  paint?: ((text: string) => string) | undefined
}

export interface TableColumn {
  title: string
  align?: 'left' | 'right'
  /**
   * On a narrow terminal, columns with the highest number are hidden first. Without a number, a column is
   * always shown.
   */
  hideOrder?: number | undefined
}

const gap = 2
const minWidth = 8

/** A table as text, and the titles of the columns that did not fit. */
export interface RenderedTable {
  text: string
  hidden: string[]
}

/** Lays out columns without borders, and makes the table fit the terminal if possible. */
export function renderTable(
  columns: TableColumn[],
  rows: Cell[][],
  options: { hasHeader: boolean; width: number | undefined; colors: Palette },
): RenderedTable {
  const header = columns.map(({ title }): Cell => ({ text: title, paint: options.colors.dim }))
  const lines = options.hasHeader ? [header, ...rows] : rows
  const widths = columns.map((_, index) => Math.max(0, ...lines.map((line) => line[index]!.text.length)))
  const kept = fit(columns, widths, options.width)
  const room = shrink(
    kept.map((index) => widths[index]!),
    options.width,
  )
  const text = lines
    .map((line) =>
      kept
        .map((index, position) => pad(line[index]!, room[position]!, columns[index]!.align))
        .join(' '.repeat(gap))
        .trimEnd(),
    )
    .join('\n')
  return { text, hidden: columns.filter((_, index) => !kept.includes(index)).map(({ title }) => title) }
}

function pad({ text, paint }: Cell, room: number, align: TableColumn['align']): string {
  const shown = text.length > room ? `${text.slice(0, room - 1)}…` : text
  const space = ' '.repeat(room - shown.length)
  const painted = paint ? paint(shown) : shown
  return align === 'right' ? space + painted : painted + space
}

const totalWidth = (widths: number[]) => widths.reduce((sum, width) => sum + width + gap, -gap)

/** Returns the indexes of the columns that are kept if the terminal is too narrow for all of them. */
function fit(columns: TableColumn[], widths: number[], width: number | undefined): number[] {
  let kept = columns.map((_, index) => index)
  while (width !== undefined && totalWidth(kept.map((index) => widths[index]!)) > width) {
    const hideOrder = Math.max(0, ...kept.map((index) => columns[index]!.hideOrder ?? 0))
    if (hideOrder === 0) break
    kept = kept.filter((index) => columns[index]!.hideOrder !== hideOrder)
  }
  return kept
}

/** Narrows columns that still do not fit, the widest column first. */
function shrink(widths: number[], width: number | undefined): number[] {
  const room = [...widths]
  while (width !== undefined && totalWidth(room) > width) {
    const widest = Math.max(...room)
    if (widest <= minWidth) break
    room[room.indexOf(widest)] = widest - 1
  }
  return room
}
