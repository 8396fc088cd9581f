import { families, type OfferQuery, type RouteQuery, vmTypes } from '@slipway/contract'
import { estimateDisk, estimateVm } from '../../billing/estimates.ts'
import { Failure } from '../../domain/failure.ts'
import { oneOf } from '../../domain/nearest.ts'
import { chooseOffers, modelsNamed, type OfferFields } from '../../fleet/choose-offers.ts'
import { readOffers } from '../../fleet/offers.ts'
import { readReservedRoom } from '../../fleet/reserved-room.ts'
import { sharedRead } from '../../postgres/keyed.ts'
import { listPrices } from '../../store/billing/prices.ts'
import { listAvailability, listCapacity } from '../../store/compute/placement.ts'
import { listQuotas } from '../../store/compute/quotas.ts'
import { listImages } from '../../store/fleet/images.ts'
import { listLocations } from '../../store/fleet/locations.ts'
import { imageView, locationView, priceViews, quotaViews, specView } from '../../views/catalogue.ts'
import type { Handlers } from '../context.ts'
import { choiceList } from '../filters.ts'
import { invalidParameter } from '../validation.ts'

export const catalogueHandlers = {
  locationList: async ({ tx }) => ({ items: (await listLocations(tx)).map(locationView) }),

  async availabilityList({ tx, query, project }) {
    const [reserved, items] = await Promise.all([readReservedRoom(tx, project), availabilities(tx, query)])
    return {
      items: items.map((item) => ({
        ...item,
        available: item.available || reserved(item.type, item.location) > 0,
      })),
    }
  },

  async capacityList({ tx, query, project }) {
    const [reserved, items] = await Promise.all([
      readReservedRoom(tx, project),
      listCapacity(tx, typesNamed(query.product_name), query.location ?? null),
    ])
    return {
      items: items.map((item) => ({ ...item, quantity: item.quantity + reserved(item.type, item.location) })),
    }
  },

  specList: async () => ({ items: vmTypes.map(specView) }),

  imageList: async ({ tx }) => ({ items: (await listImages(tx)).map(imageView) }),

  priceList: async ({ tx }) => ({ items: priceViews(await listPrices(tx)) }),

  quotaList: async ({ tx, project }) => ({ items: quotaViews(await listQuotas(tx, project.projectId)) }),

  offerList: async ({ tx, project, query }) => ({
    items: pickOffers(await readOffers(tx, project), query, (row) => row.quantity > 0 && row.quota_left > 0),
  }),

  catalogueList: async ({ services, query }) => ({
    items: pickOffers(await services.catalogue.read(), query, (row) => row.available),
  }),

  estimateCreate({ tx, by, services, body: { vm, disk } }) {
    if (vm && !disk) return estimateVm(tx, services.catalogueCache, by, vm)
    if (disk && !vm) return estimateDisk(tx, by, disk)
    throw new Failure('invalid_argument', 'Send exactly one of vm and disk.')
  },
} satisfies Partial<Handlers>

/** Shared, because many programs poll for a free GPU at the same time. */
const availabilities = sharedRead((db, { product_name, location }: RouteQuery<'availabilityList'>) =>
  listAvailability(db, typesNamed(product_name), location ?? null),
)

/** Returns every VM type if no name is given, and none for an unknown name. */
const typesNamed = (name: string | undefined) =>
  name === undefined ? vmTypes : vmTypes.filter((type) => type.name === name)

const gpuModels = Object.values(families).map(({ model }) => model)

function pickOffers<Row extends OfferFields>(
  rows: Row[],
  { gpu_model, locations, ...query }: OfferQuery,
  isAvailable: (row: Row) => boolean,
): Row[] {
  const models = gpu_model === undefined ? null : modelsNamed(gpu_model, gpuModels)
  if (models?.length === 0) throw invalidParameter('gpu_model', oneOf(gpu_model, gpuModels))
  const names = choiceList('locations', locations, [...new Set(rows.map(({ location }) => location))])
  return chooseOffers(rows, { ...query, models, locations: names }, isAvailable)
}
