import { type catalogueRoutes, type DiskCreate, type VmCreate, vmType, vmTypes } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { displayUsd, hourlyCost, timesExact } from '../../domain/money.ts'
import { diskSizeProblem, parseDiskSize, sizeGb } from '../../domain/sizes.ts'
import { findPrice, listPrices } from '../../store/billing/prices.ts'
import { listAvailability, listCapacity } from '../../store/compute/placement.ts'
import { listQuotas } from '../../store/compute/quotas.ts'
import type { Queryable } from '../../store/database.ts'
import { findImage, listImages } from '../../store/fleet/images.ts'
import { findLocation, listLocations } from '../../store/fleet/locations.ts'
import { imageView, locationView, priceView, quotaViews, specView } from '../../views/catalogue.ts'
import type { Handlers } from '../context.ts'

const hoursPerMonth = 730n
const usdDecimals = 10

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

  priceList: async ({ tx }) => ({ items: (await listPrices(tx)).map(priceView) }),

  quotaList: async ({ tx, project }) => ({ items: quotaViews(await listQuotas(tx, project.projectId)) }),

  estimateCreate: async ({ tx, body }) => {
    const { vm, disk } = body
    if (vm && !disk) return estimate(tx, await vmQuantity(tx, vm))
    if (disk && !vm) return estimate(tx, await diskQuantity(tx, disk))
    throw new Failure('invalid_argument', 'Send exactly one of vm and disk.')
  },
}

/** All without a filter; none for an unknown name. */
const typesNamed = (name: string | undefined) =>
  name === undefined ? vmTypes : vmTypes.filter((type) => type.name === name)

interface Quantity {
  productName: string
  quantity: number
  unit: 'vm_hour' | 'gb_hour'
}

async function vmQuantity(db: Queryable, vm: VmCreate): Promise<Quantity> {
  const type = vmType(vm.type)
  if (!type) throw invalidField('vm/type', `there is no VM type ${vm.type}`)
  await requireLocation(db, vm.location, 'vm/location')
  const image = await findImage(db, vm.image)
  if (!image) throw invalidField('vm/image', `there is no image ${vm.image}`)
  if (!image.locations.includes(vm.location))
    throw invalidField('vm/image', `${image.name} cannot be used in ${vm.location}`)
  return { productName: type.name, quantity: 1, unit: 'vm_hour' }
}

async function diskQuantity(db: Queryable, disk: DiskCreate): Promise<Quantity> {
  const type = disk.type ?? 'persistent-ssd'
  const problem = diskSizeProblem(type, disk.size)
  const size = parseDiskSize(disk.size)
  if (problem || !size) throw invalidField('disk/size', problem ?? 'is not a size')
  await requireLocation(db, disk.location, 'disk/location')
  return { productName: type, quantity: sizeGb(size.gib), unit: 'gb_hour' }
}

async function requireLocation(db: Queryable, name: string, field: string): Promise<void> {
  if (!(await findLocation(db, name))) throw invalidField(field, `there is no location ${name}`)
}

async function estimate(db: Queryable, { productName, quantity, unit }: Quantity) {
  const price = await findPrice(db, productName)
  const perHour = price ? hourlyCost(quantity, price.usd) : null
  const usd_per_hour = perHour && Number(displayUsd(perHour, usdDecimals))
  const usd_per_month = perHour && Number(displayUsd(timesExact(perHour, hoursPerMonth), usdDecimals))
  return { items: [{ product_name: productName, quantity, unit, usd_per_hour }], usd_per_hour, usd_per_month }
}
