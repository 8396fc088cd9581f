import { gpuQuota, type RouteResponse, type VmType, vmTypes } from '@slipway/sdk'
import type { Limit } from '../../api/limits.ts'
import { quotaLabel } from '../../lib/format.ts'

type Capacity = RouteResponse<'capacityList'>['items'][number]

/** Returns a message if a quota does not allow `count` more VMs of the type; otherwise an empty string. */
export function limitProblem(type: VmType, limits: Limit[], count = 1): string {
  const exceeded = limits.find(
    ({ name, used, max }) =>
      (name === 'vms' && used + count > max) ||
      (name === gpuQuota(type.family) && used + count * type.gpuCount > max),
  )
  if (!exceeded) return ''
  const { name, used, max } = exceeded
  return `The ${exceeded.owner} quota for ${quotaLabel(name)} is too low: ${used} of ${max} used. Ask the operator for a higher quota.`
}

/** Returns a message if `count` VMs are not in stock; otherwise an empty string. */
export function stockProblem(typeName: string, location: string, stock: number, count: number): string {
  if (stock >= count) return ''
  return stock === 0
    ? `${typeName} is out of stock in ${location}`
    : `Only ${stock} × ${typeName} available in ${location}`
}

/** Returns the default type: the first type that is in stock and within the quotas. */
export function defaultType(capacities: Capacity[], limits: Limit[]): VmType {
  const preferred = vmTypes.find(({ name }) => name === 'a100.1x') ?? vmTypes[0]!
  const hasStock = ({ name }: VmType) =>
    capacities.some(({ type, quantity }) => type === name && quantity > 0)
  return [preferred, ...vmTypes].find((type) => hasStock(type) && !limitProblem(type, limits)) ?? preferred
}
