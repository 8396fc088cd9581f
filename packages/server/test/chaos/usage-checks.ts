import { type VmState, vmStates, vmStateTable } from '@slipway/contract'
import { vmEvent } from '../../src/operations/vm/state.ts'
import type { EventRow, Evidence } from './evidence.ts'
import { groupBy } from './group-by.ts'
import { integrate } from './history-checks.ts'

interface Interval {
  resource_id: string
  resource_type: 'vm' | 'disk'
  product_name: string
  quantity: number
  from_ms: number
  to_ms: number | null
}

const intervals = `
  SELECT resource_id, resource_type, product_name, quantity,
         (extract(epoch FROM lower(period)) * 1000)::float8 AS from_ms,
         (extract(epoch FROM upper(period)) * 1000)::float8 AS to_ms
  FROM usage_intervals ORDER BY lower(period)`

const stateOf = new Map<string, VmState>(vmStates.map((state) => [vmEvent(state), state]))
/** An event and its meter are written by one transaction, which may have been delayed in between. */
const sameTransactionMs = 15_000

/** Checks that every VM was metered exactly while it was billable according to its events. */
export async function checkMeters({ cluster, history }: Evidence, events: EventRow[]): Promise<void> {
  const metered = groupBy(await cluster.sql<Interval>(intervals), ({ resource_id }) => resource_id)
  for (const [vmId, all] of groupBy(events, ({ resource_id }) => resource_id)) {
    const states = all.flatMap(({ type, created_ms }) => {
      const state = stateOf.get(type)
      return state ? [{ isBilled: vmStateTable[state].isBilled, created_ms }] : []
    })
    if (states.length === 0) continue
    const seen = states
      .filter(({ isBilled }, i) => isBilled !== (states[i - 1]?.isBilled ?? false))
      .map(({ created_ms }) => created_ms)
    const meters = (metered.get(vmId) ?? []).flatMap(({ from_ms, to_ms }) =>
      to_ms === null ? [from_ms] : [from_ms, to_ms],
    )
    const isSame =
      seen.length === meters.length && seen.every((ms, i) => Math.abs(ms - meters[i]!) < sameTransactionMs)
    if (!isSame)
      history.violation(
        `${vmId} is metered at ${meters.map(clock).join(', ')}; its events say ${seen.map(clock).join(', ')}`,
      )
  }
}

const toleranceUsd = 0.000_001

/** Checks that the monthly cost that the API reports equals the sum of the intervals, for each product. */
export async function checkCosts({ cluster, history, costs }: Evidence): Promise<void> {
  const now = new Date(costs.as_of)
  const monthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth())
  const prices = new Map(
    (await cluster.sql<{ product_name: string; usd: string }>('SELECT product_name, usd FROM prices')).map(
      ({ product_name, usd }) => [product_name, Number(usd)],
    ),
  )
  const reported = new Map(costs.by_product.map(({ product_name, usd }) => [product_name, usd]))
  const meters = (await cluster.sql<Interval>(intervals)).map((meter) => ({
    ...{ product: meter.product_name, quantity: Number(meter.quantity) },
    ...{ fromMs: meter.from_ms, toMs: meter.to_ms },
  }))
  for (const [product, usd] of integrate(meters, prices, { startMs: monthMs, nowMs: now.getTime() })) {
    if (Math.abs(usd - (reported.get(product) ?? 0)) > toleranceUsd)
      history.violation(`${product} cost ${usd} by its intervals, but ${reported.get(product)} in the API`)
  }
}

const clock = (ms: number) => new Date(ms).toISOString().slice(11, 23)
