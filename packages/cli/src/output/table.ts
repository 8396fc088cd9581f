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
  const table = new Table({
    chars: nothing,
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': gap },
    colAligns: kept.map((index) => columns[index]!.align ?? 'left'),
  })
  if (options.hasHeader) table.push(kept.map((index) => options.colors.dim(columns[index]!.title)))
  for (const row of rows) {
    table.push(
      kept.map((index) => {
        const { text, paint } = row[index]!
        return paint ? paint(text) : text
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
