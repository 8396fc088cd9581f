import Table from 'cli-table3'
import type { Palette } from './colors.ts'

export interface Cell {
  text: string
  /** Applied after the layout, which counts plain characters. */
  paint?: ((text: string) => string) | undefined
}

export interface TableColumn {
  title: string
  align?: 'left' | 'right'
  /** Left out on a narrow terminal, the highest first. */
  spare?: number | undefined
}

const gap = 2
const nothing = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '',
}

/** Columns without lines, as wide as they need and no wider than the terminal where that can be had. */
export function renderTable(
  columns: TableColumn[],
  rows: Cell[][],
  options: { hasHeader: boolean; width: number | undefined; colors: Palette },
): string {
  const widths = columns.map((column, index) =>
    Math.max(options.hasHeader ? column.title.length : 0, ...rows.map((row) => row[index]!.text.length)),
  )
  const kept = fit(columns, widths, options.width)
  const room = shrink(
    kept.map((index) => widths[index]!),
    options.width,
  )
  const table = new Table({
    chars: nothing,
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': gap },
    colAligns: kept.map((index) => columns[index]!.align ?? 'left'),
  })
  if (options.hasHeader) {
    table.push(kept.map((index, place) => options.colors.dim(cut(columns[index]!.title, room[place]!))))
  }
  for (const row of rows) {
    table.push(
      kept.map((index, place) => {
        const { text, paint } = row[index]!
        const shown = cut(text, room[place]!)
        return paint ? paint(shown) : shown
      }),
    )
  }
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

/** Which columns stay when the terminal is too narrow for all. */
function fit(columns: TableColumn[], widths: number[], width: number | undefined): number[] {
  let kept = columns.map((_, index) => index)
  const needed = () => kept.reduce((sum, index) => sum + widths[index]! + gap, -gap)
  while (width !== undefined && needed() > width) {
    const spare = Math.max(0, ...kept.map((index) => columns[index]!.spare ?? 0))
    if (spare === 0) break
    kept = kept.filter((index) => columns[index]!.spare !== spare)
  }
  return kept
}

const narrowest = 8

/** What still does not fit is cut at the widest column first. */
function shrink(widths: number[], width: number | undefined): number[] {
  const room = [...widths]
  const needed = () => room.reduce((sum, part) => sum + part + gap, -gap)
  while (width !== undefined && needed() > width) {
    const widest = Math.max(...room)
    if (widest <= narrowest) break
    room[room.indexOf(widest)] = widest - 1
  }
  return room
}

const cut = (text: string, room: number) => (text.length > room ? `${text.slice(0, room - 1)}…` : text)
