import { type CatalogueItem, gpuQuota, type Offer, type VmType, vmType, vmTypes } from '@slipway/contract'
import type { Queryable } from '../postgres/database.ts'
import { listPrices } from '../store/billing/prices.ts'
import { listAvailability, listCapacity } from '../store/compute/placement.ts'
import { listQuotas, type QuotaRow } from '../store/compute/quotas.ts'
import { offerFields } from './choose-offers.ts'
import { readReservedRoom } from './reserved-room.ts'

/** Returns every type in every location, in the order of the catalogue, with the project's quota and reserved GPUs. */
export async function readOffers(db: Queryable, project: { projectId: string }): Promise<Offer[]> {
  const [capacities, prices, quotas, reserved] = await Promise.all([
    listCapacity(db, vmTypes, null),
    readPrices(db),
    listQuotas(db, project.projectId),
    readReservedRoom(db, project),
  ])
  return capacities.map(({ type: name, location, quantity }) => {
    const type = vmType(name)!
    return {
      ...offerFields(type, location, prices(name)),
      quantity: quantity + reserved(name, location),
      quota_left: quotaLeft(type, quotas),
    }
  })
}

/** Returns the public catalogue, without quantities and quotas. */
async function readCatalogue(db: Queryable): Promise<CatalogueItem[]> {
  const [availabilities, prices] = await Promise.all([listAvailability(db, vmTypes, null), readPrices(db)])
  return availabilities.map(({ type: name, location, available }) => ({
    ...offerFields(vmType(name)!, location, prices(name)),
    available,
  }))
}

const catalogueMaxAgeMs = 1_000

/** Caches the public catalogue, so that not every request without an account queries the database. */
export class Catalogue {
  readonly #db: Queryable
  #rows: Promise<CatalogueItem[]> | undefined
  #until = 0

  constructor(db: Queryable) {
    this.#db = db
  }

  read(): Promise<CatalogueItem[]> {
    if (this.#rows && performance.now() < this.#until) return this.#rows
    const rows = readCatalogue(this.#db)
    this.#rows = rows
    this.#until = performance.now() + catalogueMaxAgeMs
    rows.catch(() => {
      if (this.#rows === rows) this.#rows = undefined
    })
    return rows
  }
}

async function readPrices(db: Queryable): Promise<(productName: string) => number | null> {
  const prices = new Map((await listPrices(db)).map(({ product_name, usd }) => [product_name, Number(usd)]))
  return (productName) => prices.get(productName) ?? null
}

/** Returns how many more VMs of the type can be created within the quotas. */
function quotaLeft({ family, gpuCount }: VmType, quotas: QuotaRow[]): number {
  const availableOf = (name: QuotaRow['name']) => quotas.find((row) => row.name === name)?.available ?? 0
  return Math.min(availableOf('vms'), Math.floor(availableOf(gpuQuota(family)) / gpuCount))
}
