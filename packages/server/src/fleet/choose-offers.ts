import type { OfferQuery, VmType } from '@slipway/contract'

/** The fields by which catalogue rows are filtered. */
export interface OfferFields {
  type: string
  location: string
  gpu_model: string
  gpu_count: number
  gpu_memory_gb: number
  usd_per_hour: number | null
}

export const offerFields = (type: VmType, location: string, usdPerHour: number | null) => ({
  type: type.name,
  location,
  gpu_model: type.gpuModel,
  gpu_count: type.gpuCount,
  gpu_memory_gb: type.gpuMemoryGb,
  cpu_cores: type.cpuCores,
  memory_gb: type.memoryGb,
  scratch_gb: type.nvmeGb,
  network_gbps: type.networkGbps,
  usd_per_hour: usdPerHour,
})

/** Returns the models that begin with the filter's words, in any letter case. `a10` does not match `A100`. */
export function modelsNamed(wanted: string, models: readonly string[]): string[] {
  const words = wordsOf(wanted)
  return models.filter((model) => wordsOf(model).slice(0, words.length).join(' ') === words.join(' '))
}

const wordsOf = (text: string) => text.toLowerCase().match(/[a-z0-9]+/g) ?? []

/** Returns the rows that match, the cheapest first and those without a price last. */
export function chooseOffers<Row extends OfferFields>(
  rows: Row[],
  query: Omit<OfferQuery, 'gpu_model' | 'locations'> & {
    models: string[] | null
    locations: string[] | null
  },
  isAvailable: (row: Row) => boolean,
): Row[] {
  const { models, locations, min_gpu_count = 0, min_gpu_memory_gb = 0, max_usd_per_hour, available } = query
  return rows
    .filter(
      (row) =>
        (!models || models.includes(row.gpu_model)) &&
        (!locations || locations.includes(row.location)) &&
        row.gpu_count >= min_gpu_count &&
        row.gpu_memory_gb >= min_gpu_memory_gb &&
        (max_usd_per_hour === undefined || (row.usd_per_hour ?? Infinity) <= max_usd_per_hour) &&
        (!available || isAvailable(row)),
    )
    .toSorted((a, b) => compare(a.usd_per_hour ?? Infinity, b.usd_per_hour ?? Infinity))
}

/** Infinite prices are equal here; their difference would be NaN. */
const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1)
