import { changeQuotas, readQuotas } from '../../accounts/quotas.ts'
import { changePrices } from '../../billing/prices.ts'
import { changeImageLocations, createImage, deleteImage } from '../../fleet/images.ts'
import { listPrices } from '../../store/billing/prices.ts'
import { listImages } from '../../store/fleet/images.ts'
import { listLocations } from '../../store/fleet/locations.ts'
import { adminLocationView, imageView, priceViews, quotaViews } from '../../views/catalogue.ts'
import { emptyResponse, type Handlers } from '../context.ts'

export const adminCatalogueHandlers = {
  adminImageList: async ({ tx }) => ({ items: (await listImages(tx)).map(imageView) }),

  adminImageCreate: async ({ tx, by, body }) => imageView(await createImage(tx, by, body)),

  adminImageUpdate: async ({ tx, by, params, body }) =>
    imageView(await changeImageLocations(tx, by, params.image_id, body.locations)),

  adminImageDelete: ({ tx, by, params }) => emptyResponse(deleteImage(tx, by, params.image_id)),

  adminLocationList: async ({ tx }) => ({ items: (await listLocations(tx)).map(adminLocationView) }),

  adminPriceList: async ({ tx }) => ({ items: priceViews(await listPrices(tx)) }),

  async adminPriceSet({ tx, by, body }) {
    await changePrices(tx, by, body.items)
    return { items: priceViews(await listPrices(tx)) }
  },

  adminQuotaList: async ({ tx, query }) => ({ items: quotaViews(await readQuotas(tx, query.project_id)) }),

  async adminQuotaSet({ tx, by, body }) {
    await changeQuotas(tx, by, body.project_id, body.items)
    return { items: quotaViews(await readQuotas(tx, body.project_id)) }
  },
} satisfies Partial<Handlers>
