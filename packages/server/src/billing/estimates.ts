import { type DiskCreate, hoursPerMonth, type VmCreate } from '@slipway/contract'
import { nestFailure } from '../domain/failure.ts'
import { addExact, displayUsd, type Exact, hourlyCost, timesExact, ZERO } from '../domain/money.ts'
import { parseDiskSize, sizeGb } from '../domain/sizes.ts'
import type { ProjectRequester } from '../operations/admission.ts'
import type { CatalogueCache } from '../operations/catalogue.ts'
import { admitDiskCreate, diskShapeOf } from '../operations/disk/create.ts'
import { admitVmCreate } from '../operations/vm/create.ts'
import { osDiskExcessGib } from '../operations/vm/os-disk.ts'
import { osDiskOf } from '../operations/vm/request-fields.ts'
import { completeVmBody } from '../operations/vm/template.ts'
import { type Queryable, runAndRollBack, type Tx } from '../postgres/database.ts'
import { findPrice } from '../store/billing/prices.ts'
import { findImageByRef } from '../store/captures/captures.ts'

const usdDecimals = 10

interface Quantity {
  productName: string
  quantity: number
  unit: 'vm_hour' | 'gb_hour'
}

/**
 * Runs the creation and rolls it back, so that an estimate fails with the same error as the creation would.
 */
export async function estimateVm(tx: Tx, catalogue: CatalogueCache, by: ProjectRequester, vm: VmCreate) {
  await tryCreation(tx, 'vm', (tried) => admitVmCreate(tried, catalogue, by, vm))
  const body = await completeVmBody(tx, by.projectId, vm)
  const image = body.custom_image && (await findImageByRef(tx, by.projectId, body.custom_image))
  const excessGib = osDiskExcessGib({ os_disk_gib: osDiskOf(body, image || undefined).gib })
  const osDisk = excessGib > 0 ? [{ type: 'persistent-ssd', gib: excessGib }] : []
  const newDisks = (body.new_disks ?? []).map(({ type = 'persistent-ssd', size }) => ({
    type,
    gib: parseDiskSize(size)!.gib,
  }))
  return estimate(tx, [
    { productName: body.type, quantity: 1, unit: 'vm_hour' },
    ...[...osDisk, ...newDisks].map(({ type, gib }) => ({
      productName: type,
      quantity: sizeGb(gib),
      unit: 'gb_hour' as const,
    })),
  ])
}

export async function estimateDisk(tx: Tx, by: ProjectRequester, disk: DiskCreate) {
  await tryCreation(tx, 'disk', (tried) => admitDiskCreate(tried, by, disk))
  const { type, sizeGib } = await diskShapeOf(tx, by.projectId, disk)
  return estimate(tx, [{ productName: type, quantity: sizeGb(sizeGib), unit: 'gb_hour' }])
}

async function tryCreation(tx: Tx, field: string, create: (tx: Tx) => Promise<unknown>): Promise<void> {
  try {
    await runAndRollBack(tx, create)
  } catch (error) {
    throw nestFailure(field, error)
  }
}

/** The total is null if one of the prices is unknown. */
async function estimate(db: Queryable, quantities: Quantity[]) {
  const costs: { item: Quantity; perHour: Exact | null }[] = []
  for (const item of quantities) {
    const price = await findPrice(db, item.productName)
    costs.push({ item, perHour: price ? hourlyCost(item.quantity, price.usd) : null })
  }
  const shown = (usd: Exact | null) => usd && Number(displayUsd(usd, usdDecimals))
  const total = costs.reduce<Exact | null>(
    (sum, { perHour }) => sum && perHour && addExact(sum, perHour),
    ZERO,
  )
  return {
    items: costs.map(({ item: { productName, quantity, unit }, perHour }) => ({
      product_name: productName,
      quantity,
      unit,
      usd_per_hour: shown(perHour),
    })),
    usd_per_hour: shown(total),
    usd_per_month: shown(total && timesExact(total, BigInt(hoursPerMonth))),
  }
}
