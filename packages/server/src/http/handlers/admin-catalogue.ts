import { type adminRoutes, diskTypes, vmTypeNames } from '@slipway/contract'
import { Failure, invalidField, notFound } from '../../domain/failure.ts'
import { nearest } from '../../domain/nearest.ts'
import { listPrices, type PriceRow, setPrices } from '../../store/billing/prices.ts'
import { listQuotas, setQuotas } from '../../store/compute/quotas.ts'
import type { Queryable } from '../../store/database.ts'
import {
  countImageUsers,
  type ImageRow,
  insertImage,
  listImages,
  removeImage,
  setImageLocations,
} from '../../store/fleet/images.ts'
import { listLocations } from '../../store/fleet/locations.ts'
import { findProjectScope, type ProjectScope } from '../../store/identity/access.ts'
import { adminLocationView, imageView, priceView, quotaViews } from '../../views/catalogue.ts'
import type { Context, Handlers } from '../context.ts'

export type AdminCatalogueRoutes = Extract<
  keyof typeof adminRoutes,
  `adminImage${string}` | `adminPrice${string}` | `adminQuota${string}` | 'adminLocationList'
>

export const adminCatalogueHandlers: Handlers<AdminCatalogueRoutes> = {
  adminImageList: async ({ tx }) => ({ items: (await listImages(tx)).map(imageView) }),

  adminImageCreate: async (context) => {
    const { tx, body } = context
    await requireLocations(tx, body.locations)
    const { description = '', tags = [], source = {} } = body
    const image = await insertImage(tx, { ...body, description, tags, source })
    if (!image) throw new Failure('already_exists', `There is an image ${body.name} already.`)
    await auditImage(context, 'image.created', image)
    return imageView(image)
  },

  adminImageUpdate: async (context) => {
    const { tx, params, body } = context
    await requireLocations(tx, body.locations)
    const image = await setImageLocations(tx, params.image_id, body.locations)
    if (!image) throw notFound('image')
    await auditImage(context, 'image.updated', image)
    return imageView(image)
  },

  adminImageDelete: async (context) => {
    const { tx, params } = context
    const users = await countImageUsers(tx, params.image_id)
    if (users > 0)
      throw new Failure(
        'conflict',
        `${users} VMs were made from this image: take its locations away to stop new ones.`,
      )
    const image = await removeImage(tx, params.image_id)
    if (!image) throw notFound('image')
    await auditImage(context, 'image.deleted', image)
    return {}
  },

  adminLocationList: async ({ tx }) => ({ items: (await listLocations(tx)).map(adminLocationView) }),

  adminPriceList: async ({ tx }) => ({ items: (await listPrices(tx)).map(priceView) }),

  adminPriceSet: async (context) => {
    const { tx, body } = context
    body.items.forEach(({ product_name, unit }, i) => {
      const expected = unitOf(product_name)
      if (!expected)
        throw invalidField(
          `items/${i}/product_name`,
          `there is no product ${product_name}; the nearest is ${nearest(product_name, products)}`,
        )
      if (unit !== expected)
        throw invalidField(`items/${i}/unit`, `the price of ${product_name} is per ${expected}`)
      if (body.items.findIndex((item) => item.product_name === product_name) < i)
        throw invalidField(`items/${i}/product_name`, `${product_name} is named twice`)
    })
    await setPrices(
      tx,
      body.items.map((item) => ({ ...item, usd: String(item.usd) })),
    )
    const data = { items: body.items }
    await context.audit({ type: 'prices.updated', resourceType: 'prices', resourceId: '', data })
    return { items: (await listPrices(tx)).map(priceView) }
  },

  adminQuotaList: async ({ tx, query }) => {
    await requireProject(tx, query.project_id)
    return { items: quotaViews(await listQuotas(tx, query.project_id)) }
  },

  adminQuotaSet: async (context) => {
    const { tx, body } = context
    const project = await requireProject(tx, body.project_id)
    body.items.forEach(({ name }, i) => {
      if (body.items.findIndex((item) => item.name === name) < i)
        throw invalidField(`items/${i}/name`, `${name} is named twice`)
    })
    await setQuotas(tx, body.project_id, body.items)
    await context.audit({
      type: 'quotas.updated',
      resourceType: 'project',
      resourceId: body.project_id,
      projectId: body.project_id,
      organizationId: project.organizationId,
      data: { items: body.items },
    })
    return { items: quotaViews(await listQuotas(tx, body.project_id)) }
  },
}

const products = [...vmTypeNames, ...diskTypes]

const unitOf = (productName: string): PriceRow['unit'] | undefined =>
  vmTypeNames.includes(productName)
    ? 'vm_hour'
    : (diskTypes as readonly string[]).includes(productName)
      ? 'gb_hour'
      : undefined

async function requireLocations(db: Queryable, names: string[]): Promise<void> {
  const known = (await listLocations(db)).map(({ name }) => name)
  names.forEach((name, i) => {
    if (!known.includes(name)) throw invalidField(`locations/${i}`, `there is no location ${name}`)
    if (names.indexOf(name) < i) throw invalidField(`locations/${i}`, `${name} is named twice`)
  })
}

async function requireProject(db: Queryable, id: string): Promise<ProjectScope> {
  const project = await findProjectScope(db, id)
  if (!project) throw notFound('project')
  return project
}

const auditImage = (context: Pick<Context, 'audit'>, type: string, image: ImageRow): Promise<void> =>
  context.audit({
    type,
    resourceType: 'image',
    resourceId: image.id,
    data: { name: image.name, locations: image.locations },
  })
