import { hoursPerMonth } from '@slipway/contract/vm-types'
import type { Disk, Price, Vm } from '@slipway/sdk'
import { money } from './format.ts'

const gibPerTib = 1024

/** Returns a size in GiB: "2TiB" is 2048. */
export function gibOf(size: string): number {
  const [, amount = '0', unit] = /^(\d+)(GiB|TiB)$/.exec(size) ?? []
  return Number(amount) * (unit === 'TiB' ? gibPerTib : 1)
}

/** Returns the price of a disk per hour; null if no price is set. */
export function diskUsdPerHour({ type, size }: Pick<Disk, 'type' | 'size'>, prices: Price[]): number | null {
  const price = prices.find(({ product_name }) => product_name === type)
  return price ? price.usd * gibOf(size) : null
}

/** Returns the price of a snapshot or image of a disk, which uses at most the size of the disk; empty if unknown. */
export function copyPriceText(product: 'snapshot' | 'custom-image', size: string, prices: Price[]): string {
  const price = prices.find(({ product_name }) => product_name === product)
  if (!price || !size) return ''
  return `Billed by the storage that it uses: at most ${monthlyText(price.usd * gibOf(size))}.`
}

/** Returns a price per hour as a price per month: "73.00 USD per month". */
export const monthlyText = (usdPerHour: number): string => `${money(usdPerHour * hoursPerMonth)} per month`

/** Returns the data disks of the VMs, without repetition: several VMs can have the same disk. */
export function dataDisksOf(vms: Vm[]): Vm['disks'] {
  const data = vms.flatMap(({ disks }) => disks.filter(({ attachment_type }) => attachment_type === 'data'))
  return [...new Map(data.map((disk) => [disk.id, disk])).values()]
}
