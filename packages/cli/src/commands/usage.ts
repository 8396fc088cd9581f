import type { UsageItem } from '@slipway/sdk'
import type { Cli } from '../core/cli.ts'
import { command } from '../core/command.ts'
import { UsageError } from '../errors/cli-error.ts'
import { type Column, print, printData, printList } from '../output/print.ts'
import { bar, quantityText, usd, words } from '../output/text.ts'

interface UsageInput {
  month?: string
  org?: string | true
  location?: string
  csv?: boolean
}

interface ProductUsage {
  product: string
  location: string
  quantity: number
  unit: string
  usd: number | null
}

const columns: Column<ProductUsage>[] = [
  { name: 'product', value: (row) => row.product },
  { name: 'location', value: (row) => row.location },
  { name: 'quantity', value: (row) => quantityText(row.quantity), align: 'right' },
  { name: 'unit', value: (row) => words(row.unit), hideOrder: 1 },
  { name: '$', value: (row) => usd(row.usd), align: 'right' },
]

export const usage = command<UsageInput>({
  name: 'usage',
  summary: 'show usage by day',
  details:
    'Shows complete UTC days; a day appears shortly after it ends. `slipway cost` shows the current cost.',
  options: [
    { flags: '--month <month>', description: 'month, for example 2026-11 (default: this month)' },
    { flags: '--location <location>', description: 'only usage in this location', complete: 'location' },
    { flags: '--org [organization]', description: 'all projects of the organization', complete: 'org' },
    { flags: '--csv', description: 'print the usage of the project as CSV' },
  ],
  columns,
  examples: [
    'slipway usage',
    'slipway usage --month 2026-10',
    'slipway usage --org -o json',
    'slipway usage --csv > november.csv',
  ],
  async run(cli, { month, org, location, csv }) {
    const period = { ...monthRange(month), location }
    if (csv) {
      const text = await cli.client.usageCsv({ project_id: await cli.project(), ...period })
      return print(cli, text.trimEnd())
    }
    const { items } = org
      ? await cli.client.organizationUsage({
          organization_id: await cli.organization(org === true ? undefined : org),
          ...period,
        })
      : await cli.client.projectUsage({ project_id: await cli.project(), ...period })
    if (cli.format.kind !== 'table') return printData(cli, items)
    await printList(cli, byProduct(items), columns, ['product', 'location', 'quantity', 'unit', 'usd'])
    if (items.length === 0 && period.end_date >= new Date().toISOString().slice(0, 10))
      cli.note(
        'Each day’s usage is recorded shortly after midnight UTC. For current cost, run `slipway cost`.',
      )
    if (items.length > 0) for (const line of dailyChart(cli, items)) print(cli, line)
  },
})

export function monthRange(
  month: string | undefined,
  now = new Date(),
): { start_date: string; end_date: string } {
  const text = month ?? now.toISOString().slice(0, 7)
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(text))
    throw new UsageError(`${text} is not a month. Expected format: 2026-11.`)
  const [year = 0, number = 0] = text.split('-').map(Number)
  const end = new Date(Date.UTC(year, number, 0))
  return { start_date: `${text}-01`, end_date: end.toISOString().slice(0, 10) }
}

function byProduct(items: UsageItem[]): ProductUsage[] {
  const rows = new Map<string, ProductUsage>()
  for (const item of items) {
    const key = `${item.product_name} ${item.location}`
    const row = rows.get(key) ?? {
      product: item.product_name,
      location: item.location,
      quantity: 0,
      unit: item.unit,
      usd: null,
    }
    row.quantity += item.quantity
    if (item.usd !== null) row.usd = (row.usd ?? 0) + item.usd
    rows.set(key, row)
  }
  return Array.from(rows.values()).sort((a, b) => (b.usd ?? 0) - (a.usd ?? 0))
}

/** Returns one line per day, with the date, a bar and the total. */
function dailyChart({ io, colors }: Cli, items: UsageItem[]): string[] {
  const days = new Map<string, number>()
  for (const item of items) days.set(item.date, (days.get(item.date) ?? 0) + (item.usd ?? 0))
  const highest = Math.max(...days.values())
  const width = Math.max(10, Math.min(60, (io.stdout.columns ?? 80) - 24))
  const lines = Array.from(days)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([date, sum]) => {
      const dayBar = bar(highest > 0 ? sum / highest : 0, width)
      return `${date}  ${colors.cyan(dayBar)}${' '.repeat(width - dayBar.length)}  ${usd(sum).padStart(10)}`
    })
  return ['', ...lines]
}
