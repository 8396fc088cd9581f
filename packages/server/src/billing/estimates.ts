import { type DiskCreate, type VmCreate, vmType } from '@slipway/contract'
import { invalidField } from '../domain/failure.ts'
import { displayUsd, hourlyCost, timesExact } from '../domain/money.ts'
import { diskSizeProblem, parseDiskSize, sizeGb } from '../domain/sizes.ts'
import { findPrice } from '../store/billing/prices.ts'
import type { Queryable } from '../store/database.ts'
import { findImage } from '../store/fleet/images.ts'
import { findLocation } from '../store/fleet/locations.ts'

const hoursPerMonth = 730n
const usdDecimals = 10

interface Quantity {
  productName: string
  quantity: number
  unit: 'vm_hour' | 'gb_hour'
}

export async function estimateVm(db: Queryable, vm: VmCreate) {
  const type = vmType(vm.type)
  if (!type) throw invalidField('vm/type', `there is no VM type ${vm.type}`)
  await requireLocation(db, vm.location, 'vm/location')
  const image = await findImage(db, vm.image)
  if (!image) throw invalidField('vm/image', `there is no image ${vm.image}`)
  if (!image.locations.includes(vm.location))
    throw invalidField('vm/image', `${image.name} cannot be used in ${vm.location}`)
  return estimate(db, { productName: type.name, quantity: 1, unit: 'vm_hour' })
}

export async function estimateDisk(db: Queryable, disk: DiskCreate) {
  const type = disk.type ?? 'persistent-ssd'
  const problem = diskSizeProblem(type, disk.size)
  const size = parseDiskSize(disk.size)
  if (problem || !size) throw invalidField('disk/size', problem ?? 'is not a size')
  await requireLocation(db, disk.location, 'disk/location')
  return estimate(db, { productName: type, quantity: sizeGb(size.gib), unit: 'gb_hour' })
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
