import type { UsageItem } from '@slipway/contract'
import { addDays, daysBetween } from '../../domain/months.ts'
import type { Queryable } from '../../postgres/database.ts'
import { time } from '../../postgres/time.ts'
import {
  listProjectIds,
  listUsage,
  listUsageByLabel,
  listUsageByResource,
  type UsageFilter,
  usageState,
} from '../../store/billing/usage-days.ts'
import { labelUsageView, resourceUsageView, usageView } from '../../views/billing.ts'
import { type Context, type Handlers, RawResponse } from '../context.ts'
import { locationFilter } from '../filters.ts'
import { invalidParameter } from '../validation.ts'

const defaultDays = 31
const maxDays = 366
const maxDaysByResource = 31
/** The limits of dates, so that adding or subtracting days still gives a year with four digits. */
const firstDay = '1970-01-01'
const lastDay = '2999-12-31'

type UsageRoutes = 'organizationUsage' | 'projectUsage'

export const usageHandlers = {
  organizationUsage: async (context) =>
    usageResponse(context, await listProjectIds(context.tx, context.organizationId)),
  projectUsage: (context) => usageResponse(context, [context.project.projectId]),
} satisfies Partial<Handlers>

async function usageResponse(
  { tx, query, request }: Pick<Context<UsageRoutes>, 'tx' | 'query' | 'request'>,
  projectIds: string[],
) {
  const { closed_at, today } = await usageState(tx)
  const items = await usageOf(tx, projectIds, query, today)
  if (wantsCsv(request.headers.accept))
    return new RawResponse('text/csv; charset=utf-8', toCsv(items, query.group_by))
  return { items, updated_at: time(closed_at) }
}

/** The period includes the start date and the end date. Without dates, it is the last 31 days. */
async function usageOf(
  db: Queryable,
  projectIds: string[],
  query: Context<UsageRoutes>['query'],
  today: string,
): Promise<UsageItem[]> {
  for (const field of ['start_date', 'end_date'] as const) {
    const day = query[field]
    if (day !== undefined && (day < firstDay || day > lastDay))
      throw invalidParameter(field, `must be from ${firstDay} to ${lastDay}`)
  }
  const max = query.group_by === 'resource' ? maxDaysByResource : maxDays
  const endDate = query.end_date ?? (query.start_date ? addDays(query.start_date, max - 1) : today)
  const startDate = query.start_date ?? addDays(endDate, 1 - defaultDays)
  const days = daysBetween(startDate, endDate) + 1
  if (days < 1) throw invalidParameter('end_date', 'must not be before start_date')
  if (days > max)
    throw invalidParameter(
      'start_date',
      `must be later: a request can cover at most ${max} days; send several requests for a longer period`,
    )
  const items = await readUsage(db, projectIds, query.group_by, {
    startDate,
    endDate,
    location: query.location ?? null,
    resourceType: query.resource_type ?? null,
  })
  // The location is checked only if there is no usage, so that the usage of a removed location can still be
  // read.
  if (items.length === 0) await locationFilter(db, query.location)
  return items
}

async function readUsage(
  db: Queryable,
  projectIds: string[],
  grouping: string | undefined,
  filter: UsageFilter,
): Promise<UsageItem[]> {
  if (grouping === undefined) return (await listUsage(db, projectIds, filter)).map(usageView)
  if (grouping === 'resource')
    return (await listUsageByResource(db, projectIds, filter)).map(resourceUsageView)
  const key = grouping.slice('label:'.length)
  return (await listUsageByLabel(db, projectIds, key, filter)).map(labelUsageView)
}

/** Returns whether the Accept header lists CSV with at least the weight of JSON. */
function wantsCsv(accept: string | undefined): boolean {
  const weights = new Map(
    (accept ?? '').split(',').map((part): [string, number] => {
      const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
      const weight = parameters.find((parameter) => parameter.startsWith('q='))
      return [type, weight ? Number(weight.slice(2)) : 1]
    }),
  )
  const csv = weights.get('text/csv') ?? 0
  return csv > 0 && csv >= (weights.get('application/json') ?? 0)
}

const columns = [
  'date',
  'project_id',
  'location',
  'resource_type',
  'product_name',
  'quantity',
  'unit',
  'usd',
] as const

/** RFC 4180: lines end with CRLF. An unknown price is an empty field. */
function toCsv(items: UsageItem[], grouping: string | undefined): string {
  const all = [
    ...columns,
    ...(grouping === undefined ? [] : (groupColumns[grouping] ?? ['label_value'])),
  ] as const
  const lines = items.map((item) => all.map((column) => csvField(flat(item[column]))).join(','))
  return [all.join(','), ...lines].map((line) => `${line}\r\n`).join('')
}

const groupColumns: Record<string, (keyof UsageItem)[]> = {
  resource: ['resource_id', 'resource_name', 'labels'],
}

/** Writes labels as one field: `stage=test;team=ml`. */
const flat = (value: UsageItem[keyof UsageItem]): string | number | null =>
  typeof value !== 'object' || value === null
    ? (value ?? null)
    : Object.entries(value)
        .map(([key, text]) => `${key}=${text}`)
        .sort()
        .join(';')

function csvField(value: string | number | null): string {
  const text = typeof value === 'number' ? plainNumber(value) : (value ?? '')
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Formats a number without an exponent, because spreadsheets read 1e-7 as text. */
const plainNumber = (value: number) => value.toFixed(6).replace(/\.?0+$/, '')
