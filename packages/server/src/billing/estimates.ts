import type { DiskCreate, VmCreate } from '@slipway/contract'
import { asMember } from '../domain/failure.ts'
import { displayUsd, hourlyCost, timesExact } from '../domain/money.ts'
import { parseDiskSize, sizeGb } from '../domain/sizes.ts'
import type { ProjectRequester } from '../operations/admission.ts'
import type { CatalogueMemory } from '../operations/catalogue.ts'
import { admitDiskCreate } from '../operations/disk/create.ts'
import { admitVmCreate } from '../operations/vm/create.ts'
import { findPrice } from '../store/billing/prices.ts'
import { type Queryable, type Tx, tryOut } from '../store/database.ts'

const hoursPerMonth = 730n
const usdDecimals = 10

interface Quantity {
  productName: string
  quantity: number
  unit: 'vm_hour' | 'gb_hour'
}

/** Refused with the very error that the creation would give, since it is the creation, taken back. */
export async function estimateVm(tx: Tx, catalogue: CatalogueMemory, by: ProjectRequester, vm: VmCreate) {
  await asIfCreated(tx, 'vm', (tried) => admitVmCreate(tried, catalogue, { by, body: vm }))
  return estimate(tx, { productName: vm.type, quantity: 1, unit: 'vm_hour' })
}

export async function estimateDisk(tx: Tx, by: ProjectRequester, disk: DiskCreate) {
  await asIfCreated(tx, 'disk', (tried) => admitDiskCreate(tried, by, disk))
  const { type = 'persistent-ssd', size } = disk
  return estimate(tx, {
    productName: type,
    quantity: sizeGb(parseDiskSize(size)!.gib),
    unit: 'gb_hour',
  })
}

async function asIfCreated(tx: Tx, member: string, create: (tx: Tx) => Promise<unknown>): Promise<void> {
  try {
    await tryOut(tx, create)
  } catch (error) {
    throw asMember(member, error)
  }
}

async function estimate(db: Queryable, { productName, quantity, unit }: Quantity) {
  const price = await findPrice(db, productName)
  const perHour = price ? hourlyCost(quantity, price.usd) : null
  const usd_per_hour = perHour && Number(displayUsd(perHour, usdDecimals))
  const usd_per_month = perHour && Number(displayUsd(timesExact(perHour, hoursPerMonth), usdDecimals))
  return { items: [{ product_name: productName, quantity, unit, usd_per_hour }], usd_per_hour, usd_per_month }
}
