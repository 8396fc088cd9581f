import { gpuQuota, vmType } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'

export interface Offer {
  type: string
  gpu: string
  num_gpu: number
  cpu_cores: number
  memory_gb: number
  location: string
  available: boolean
  /** This many more VMs fit now. */
  quantity: number
  usd_per_hour: number | null
  /** The project's quota covers this many more; null means that the service names no quota for the type. */
  quota_left: number | null
}

/** Returns every type in every location with its price and its stock, cheapest first. */
export async function findOffers(
  cli: Cli,
  filter: { gpu?: string; location?: string } = {},
): Promise<Offer[]> {
  const project_id = await cli.project()
  const { client } = cli
  const place = { project_id, location: filter.location }
  const [specs, availabilities, capacities, prices, quotas] = await Promise.all([
    client.collect('specList', { project_id }),
    client.collect('availabilityList', place),
    client.collect('capacityList', place),
    client.collect('priceList', { project_id }),
    client.collect('quotaList', { project_id }),
  ])
  const priceOf = new Map(prices.map((price) => [price.product_name, price.usd]))
  const quotaOf = new Map<string, number>(quotas.map((quota) => [quota.name, quota.available]))
  const quantityOf = new Map(
    capacities.map(({ type, location, quantity }) => [`${type} ${location}`, quantity]),
  )
  const specOf = new Map(specs.map((spec) => [spec.product_name, spec]))

  const offers = availabilities.flatMap(({ type, location, available }): Offer[] => {
    const spec = specOf.get(type)
    if (!spec || !matchesGpu(filter.gpu, type, spec.gpu_type)) return []
    return [
      {
        type,
        gpu: spec.gpu_type,
        num_gpu: spec.num_gpu,
        cpu_cores: spec.cpu_cores,
        memory_gb: spec.memory_gb,
        location,
        available,
        quantity: quantityOf.get(`${type} ${location}`) ?? 0,
        usd_per_hour: priceOf.get(type) ?? null,
        quota_left: quotaLeft(type, spec.num_gpu, quotaOf),
      },
    ]
  })
  return offers.sort(
    (one, other) =>
      (one.usd_per_hour ?? Number.MAX_VALUE) - (other.usd_per_hour ?? Number.MAX_VALUE) ||
      one.type.localeCompare(other.type) ||
      one.location.localeCompare(other.location),
  )
}

/** `a100` means the 40 GB and the 80 GB kind, `a100-80gb` one of them, `a100.4x` one type. */
function matchesGpu(wanted: string | undefined, type: string, model: string): boolean {
  if (!wanted) return true
  const text = wanted.toLowerCase()
  return (
    type === text ||
    type.startsWith(`${text}.`) ||
    type.startsWith(`${text}-`) ||
    model.toLowerCase().includes(text)
  )
}

function quotaLeft(type: string, gpuCount: number, quotaOf: Map<string, number>): number | null {
  const family = vmType(type)?.family
  const gpus = family && quotaOf.get(gpuQuota(family))
  if (gpus === undefined) return null
  const vms = quotaOf.get('vms') ?? Number.MAX_SAFE_INTEGER
  return Math.max(0, Math.min(vms, Math.floor(gpus / gpuCount)))
}
