import { type catalogueRoutes, vmTypes } from '@slipway/contract'
import { estimateDisk, estimateVm } from '../../billing/estimates.ts'
import { Failure } from '../../domain/failure.ts'
import { listPrices } from '../../store/billing/prices.ts'
import { listAvailability, listCapacity } from '../../store/compute/placement.ts'
import { listQuotas } from '../../store/compute/quotas.ts'
import { listImages } from '../../store/fleet/images.ts'
import { listLocations } from '../../store/fleet/locations.ts'
import { imageView, locationView, priceViews, quotaViews, specView } from '../../views/catalogue.ts'
import type { Handlers } from '../context.ts'

export const catalogueHandlers: Handlers<keyof typeof catalogueRoutes> = {
  locationList: async ({ tx }) => ({ items: (await listLocations(tx)).map(locationView) }),

  availabilityList: async ({ tx, query }) => ({
    items: await listAvailability(tx, typesNamed(query.product_name), query.location ?? null),
  }),

  capacityList: async ({ tx, query }) => ({
    items: await listCapacity(tx, typesNamed(query.product_name), query.location ?? null),
  }),

  specList: async () => ({ items: vmTypes.map(specView) }),

  imageList: async ({ tx }) => ({ items: (await listImages(tx)).map(imageView) }),

  priceList: async ({ tx }) => ({ items: priceViews(await listPrices(tx)) }),

  quotaList: async ({ tx, project }) => ({ items: quotaViews(await listQuotas(tx, project.projectId)) }),

  estimateCreate({ tx, by, body: { vm, disk } }) {
    if (vm && !disk) return estimateVm(tx, by, vm)
    if (disk && !vm) return estimateDisk(tx, by, disk)
    throw new Failure('invalid_argument', 'Send exactly one of vm and disk.')
  },
}

/** All without a filter; none for an unknown name. */
const typesNamed = (name: string | undefined) =>
  name === undefined ? vmTypes : vmTypes.filter((type) => type.name === name)
