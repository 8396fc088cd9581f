import type { MeteredType } from '@slipway/contract'
import { groupBy } from './lists.ts'
import {
  addExact,
  centsToUsd,
  compareExact,
  displayUsd,
  type Exact,
  toCents,
  usdOfMs,
  ZERO,
} from './money.ts'

/**
 * Priced usage of one project and product. `quantity_ms` is the quantity times milliseconds. `cost_usd_ms` is USD
 * per hour times milliseconds, which is exact (`usdOfMs` converts it to USD); it is null if there is no price.
 */
export interface Charge {
  project_id: string
  product_name: string
  resource_type: MeteredType
  quantity_ms: string
  cost_usd_ms: string | null
}

export interface ChargeLine {
  project_id: string
  product_name: string
  unit: 'vm_hour' | 'gb_hour' | 'gpu_hour' | 'address_hour'
  quantity_ms: string
  usd_cents: string
}

const units = {
  vm: 'vm_hour',
  disk: 'gb_hour',
  reservation: 'gpu_hour',
  custom_image: 'gb_hour',
  snapshot: 'gb_hour',
  address: 'address_hour',
} as const satisfies Record<MeteredType, string>

export const unitOf = (resourceType: Charge['resource_type']) => units[resourceType]

const usdOf = ({ cost_usd_ms }: Charge): Exact => (cost_usd_ms === null ? ZERO : usdOfMs(cost_usd_ms))

export const sumUsd = (charges: Charge[]): Exact => addExact(...charges.map(usdOf))

/** Sorted by cost, the highest first. */
export function usdByProduct(charges: Charge[]): { product_name: string; usd: Exact }[] {
  return [...groupBy(charges, (charge) => charge.product_name)]
    .map(([product_name, group]) => ({ product_name, usd: sumUsd(group) }))
    .toSorted((a, b) => compareExact(b.usd, a.usd) || a.product_name.localeCompare(b.product_name))
}

/**
 * Returns one line for each project and product, rounded to cents. Elsewhere, amounts are rounded only for
 * display.
 */
export function chargeLines(charges: Charge[]): ChargeLine[] {
  return [...groupBy(charges, (charge) => `${charge.project_id} ${charge.product_name}`).values()].map(
    (group) => {
      const [first] = group as [Charge]
      return {
        project_id: first.project_id,
        product_name: first.product_name,
        unit: unitOf(first.resource_type),
        quantity_ms: String(group.reduce((sum, { quantity_ms }) => sum + BigInt(quantity_ms), 0n)),
        usd_cents: String(toCents(sumUsd(group))),
      }
    },
  )
}

export const totalCents = (lines: { usd_cents: string }[]): bigint =>
  lines.reduce((sum, { usd_cents }) => sum + BigInt(usd_cents), 0n)

export const usdNumber = (amount: Exact): number => Number(displayUsd(amount))

export const usdNumberOfCents = (cents: string): number => Number(centsToUsd(BigInt(cents)))
