import { amount } from '../format.ts'

const upTo = (maximumFractionDigits: number) => new Intl.NumberFormat(undefined, { maximumFractionDigits })
const numbers = { 0: upTo(0), 1: upTo(1), 3: upTo(3) } as const
const threeDecimals = new Intl.NumberFormat(undefined, { minimumFractionDigits: 3, maximumFractionDigits: 3 })

/** Like `amount`, but a cost that rounds to zero is not shown as zero. */
export const costAmount = (value: number): string =>
  value > 0 && value < 0.005 ? `< ${amount(0.01)}` : amount(value)

const unitNames: Record<string, string> = {
  vm_hour: 'VM-hours',
  gb_hour: 'GiB-hours',
  gpu_hour: 'GPU-hours',
  address_hour: 'address-hours',
}
const unitName = (unit: string): string => unitNames[unit] ?? unit

export function quantity(value: number, unit: string): string {
  const digits = value >= 100 ? 0 : value >= 1 ? 1 : 3
  return `${numbers[digits].format(value)} ${unitName(unit)}`
}

/** For invoices, whose amounts readers recompute from the quantities. */
export const preciseQuantity = (value: number, unit: string): string =>
  `${threeDecimals.format(value)} ${unitName(unit)}`
