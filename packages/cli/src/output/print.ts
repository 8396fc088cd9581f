import type { Cli } from '../core/cli.ts'
import { UsageError } from '../core/failure.ts'
import { paintState } from './colors.ts'
import { type Cell, renderTable, type TableColumn } from './table.ts'

export interface Column<T> {
  /** As in `-o columns=…`; the header is the same in capitals. */
  name: string
  value: (row: T) => string | number | boolean | null | undefined
  align?: 'left' | 'right'
  /** Left out on a narrow terminal, the highest first. */
  spare?: number
  /** Only shown when asked for with `-o columns=…`. */
  isExtra?: boolean
  /** Painted by what the state means. */
  isState?: boolean
}

/** A list: a table for people, a bare array for programs. */
export async function printList<T extends object>(cli: Cli, rows: T[], columns: Column<T>[]): Promise<void> {
  if (cli.format.kind !== 'table') return printData(cli, rows)
  const chosen = chooseColumns(columns, cli.format.columns)
  if (rows.length === 0) {
    cli.note(cli.noteColors.dim('Nothing to show.'))
    if (!cli.format.hasHeader) return
  }
  const heads: TableColumn[] = chosen.map(({ name, align, spare }) => ({
    title: name.toUpperCase().replaceAll('_', ' '),
    align: align ?? 'left',
    spare: cli.format.columns ? undefined : spare,
  }))
  const cells = rows.map((row) => chosen.map((column) => cellOf(cli, column, row)))
  const width = process.stdout.isTTY ? process.stdout.columns : undefined
  print(renderTable(heads, cells, { hasHeader: cli.format.hasHeader, width, colors: cli.colors }))
}

/** One record: an object for programs, label and value for people. */
export async function printOne<T extends object>(
  cli: Cli,
  record: T,
  fields: (record: T) => [label: string, value: string][] = plainFields,
): Promise<void> {
  if (cli.format.kind !== 'table') return printData(cli, record)
  if (cli.format.columns) {
    const values = cli.format.columns.map((path) => textOf(at(record, path)))
    return print(values.join('  '))
  }
  const lines = fields(record)
  const width = Math.max(...lines.map(([label]) => label.length))
  for (const [label, value] of lines) {
    const shown = label === 'State' ? paintState(cli.colors, value) : value
    const [first = '', ...rest] = shown.split('\n')
    print(`${cli.colors.dim(label.padEnd(width))}  ${first}`.trimEnd())
    for (const line of rest) print(`${' '.repeat(width)}  ${line}`)
  }
}

export async function printData(cli: Cli, data: unknown): Promise<void> {
  if (cli.format.kind === 'yaml') {
    const { stringify } = await import('yaml')
    return print(stringify(data, { lineWidth: 0 }).trimEnd())
  }
  print(JSON.stringify(data, null, 2))
}

/** Results, and nothing else, go to stdout. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

function chooseColumns<T extends object>(columns: Column<T>[], names: string[] | undefined): Column<T>[] {
  if (!names) return columns.filter((column) => !column.isExtra)
  return names.map((name) => {
    const known = columns.find((column) => column.name === name)
    if (known) return known
    if (!/^[a-z][\w.]*$/i.test(name)) {
      throw new UsageError(`There is no column ${name}.`, [columns.map((column) => column.name).join(', ')])
    }
    return { name, value: (row: T) => textOf(at(row, name)) }
  })
}

function cellOf<T>(cli: Cli, column: Column<T>, row: T): Cell {
  const value = column.value(row)
  const text = value === null || value === undefined || value === '' ? '-' : String(value)
  if (!column.isState) return { text }
  const word = text.replace(/^STATE_/, '').toLowerCase()
  return { text: word, paint: (shown) => paintState(cli.colors, shown) }
}

/** `network_interfaces.0.mac_address` */
function at(record: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], record)
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function plainFields(record: object): [string, string][] {
  return Object.entries(record).map(([name, value]) => [labelOf(name), fieldText(value)])
}

const labelOf = (name: string) => {
  const text = name
    .replaceAll('_', ' ')
    .replace(/\b(id|url|ip|usd|cpu|gpu|gb|vpc|ipv4|cidr)\b/g, (word) => word.toUpperCase())
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function fieldText(value: unknown): string {
  if (value === null || value === '' || value === undefined) return '-'
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(itemText).join('\n')
  return itemText(value)
}

function itemText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .filter(([, member]) => member !== '' && member !== null)
    .map(([name, member]) => `${name}=${textOf(member)}`)
    .join(' ')
}
