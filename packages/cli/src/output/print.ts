import type { ListId } from '@slipway/sdk'
import { UsageError } from '../errors/cli-error.ts'
import { type Io, widthOf } from '../io.ts'
import { type Palette, paintState } from './colors.ts'
import type { OutputFormat } from './format.ts'
import { membersOf } from './record-members.ts'
import { stateWord } from './state.ts'
import { type Cell, renderTable, type TableColumn } from './table.ts'
import { usd } from './text.ts'
import { jsonText, safeLine, safeText } from './untrusted.ts'

/** Where results and notes are printed, and in which format. */
export interface Output {
  readonly io: Io
  readonly format: OutputFormat
  /** For results on stdout. */
  readonly colors: Palette
  /** For notes and progress on stderr. */
  readonly noteColors: Palette
  note(text: string): void
}

export interface Column<T> {
  /** The name in `-o columns=…`. The header is the same name in capitals. */
  name: string
  value: (row: T) => string | number | boolean | null | undefined
  align?: 'left' | 'right'
  /**
   * On a narrow terminal, columns with the highest number are hidden first. Without a number, a column is
   * always shown.
   */
  hideOrder?: number
  /** True if the column is shown only if it is listed in `-o columns=…`. */
  isExtra?: boolean
  /** True if the value is a state, which is shown in color. */
  isState?: boolean
}

/**
 * Prints a list as a table, or as a JSON or YAML array. `source` is the route of the list, or the field names
 * of the rows. It determines which columns exist if the list is empty.
 */
export async function printList<T extends object>(
  output: Output,
  rows: T[],
  columns: Column<T>[],
  source: ListId | (keyof T & string)[],
): Promise<void> {
  if (output.format.kind !== 'table') return printData(output, rows)
  const { columns: names } = output.format
  const membersWithoutRows = async () => (typeof source === 'string' ? membersOf(source) : source)
  const members = rows[0] ? Object.keys(rows[0]) : names ? await membersWithoutRows() : []
  const chosen = chooseColumns(columns, names, members)
  if (rows.length === 0) {
    output.note(output.noteColors.dim('Nothing to show.'))
    if (!output.format.hasHeader) return
  }
  const headers: TableColumn[] = chosen.map(({ name, align, hideOrder }) => ({
    title: name.toUpperCase().replaceAll('_', ' '),
    align: align ?? 'left',
    hideOrder: output.format.columns ? undefined : hideOrder,
  }))
  const cells = rows.map((row) => chosen.map((column) => cellOf(output, column, row)))
  const width = widthOf(output.io.stdout)
  const { text, hidden } = renderTable(headers, cells, {
    hasHeader: output.format.hasHeader,
    width,
    colors: output.colors,
  })
  print(output, text)
  if (hidden.length > 0) {
    const names = hidden.map((title) => title.toLowerCase().replaceAll(' ', '_'))
    output.note(
      output.noteColors.dim(`Hidden columns: ${names.join(', ')}. Widen the terminal, or use -o columns=…`),
    )
  }
}

/** Prints one record as labels and values, or as a JSON or YAML object. */
export async function printOne<T extends object>(
  output: Output,
  record: T,
  fields: (record: T) => [label: string, value: string][] = plainFields,
  columns: Column<T>[] = [],
): Promise<void> {
  if (output.format.kind !== 'table') return printData(output, record)
  if (output.format.columns) {
    const chosen = chooseColumns(columns, output.format.columns, Object.keys(record))
    return print(output, chosen.map((column) => cellOf(output, column, record).text).join('  '))
  }
  const lines = fields(record)
  const width = Math.max(...lines.map(([label]) => label.length))
  for (const [label, value] of lines) {
    const [first = '', ...rest] = value.split('\n').map(safeLine)
    const shown = label === 'State' ? paintState(output.colors, first) : first
    print(output, `${output.colors.dim(label.padEnd(width))}  ${shown}`.trimEnd())
    for (const line of rest) print(output, `${' '.repeat(width)}  ${line}`)
  }
}

export async function printData(output: Output, data: unknown): Promise<void> {
  if (output.format.kind === 'yaml') {
    const { stringify } = await import('yaml')
    return print(output, stringify(data, { lineWidth: 0 }).trimEnd())
  }
  print(output, jsonText(data, 2))
}

/** Prints one object of a stream as one line of JSON. */
export const printLine = (output: Output, data: unknown): void => print(output, jsonText(data))

/** Prints to stdout, which is only for results. */
export function print({ io }: Output, text: string): void {
  io.stdout.write(`${safeText(text)}\n`)
}

/** Returns the chosen columns. Besides its own columns, a table can show any field of its rows by path. */
function chooseColumns<T extends object>(
  columns: Column<T>[],
  names: string[] | undefined,
  members: string[],
): Column<T>[] {
  if (!names) return columns.filter((column) => !column.isExtra)
  return names.map((name) => {
    const known = columns.find((column) => column.name === name)
    if (known) return known
    if (!members.includes(name.split('.')[0]!)) {
      const all = new Set([...columns.map((column) => column.name), ...members])
      throw new UsageError(`Unknown column ${name}.`, [`Supported: ${[...all].join(', ')}`])
    }
    return { name, value: (row: T) => memberText(name, valueAt(row, name)) }
  })
}

function cellOf<T>(output: Output, column: Column<T>, row: T): Cell {
  const value = column.value(row)
  const text = value === null || value === undefined || value === '' ? '-' : safeLine(String(value))
  if (!column.isState) return { text }
  const word = stateWord(text)
  return { text: word, paint: (shown) => paintState(output.colors, shown) }
}

/** Returns the value at a path such as `network_interfaces.0.mac_address`. */
function valueAt(record: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], record)
}

/** Formats dollar amounts, such as `usd_per_hour`, in the same way as price columns. */
function memberText(path: string, value: unknown): string {
  const isMoney = typeof value === 'number' && /(^|\.)(usd|usd_per_\w+|\w+_usd)$/.test(path)
  return isMoney ? usd(value) : textOf(value)
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function plainFields(record: object): [string, string][] {
  return Object.entries(record).map(([name, value]) => [labelOf(name), fieldText(name, value)])
}

const labelOf = (name: string) => {
  const text = name
    .replaceAll('_', ' ')
    .replace(/\b(id|url|ip|usd|cpu|gpu|gb|vpc|ipv4|cidr)\b/g, (word) => word.toUpperCase())
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function fieldText(name: string, value: unknown): string {
  if (value === null || value === '' || value === undefined) return '-'
  if (typeof value === 'number') return memberText(name, value)
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(itemText).join('\n')
  return itemText(value) || '-'
}

function itemText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .filter(([, member]) => member !== '' && member !== null)
    .map(([name, member]) => `${name}=${textOf(member)}`)
    .join(' ')
}
