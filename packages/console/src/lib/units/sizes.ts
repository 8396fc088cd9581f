import type { VmType } from '@slipway/sdk'
import { count } from '../format.ts'

const oneDecimal = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 })

/** Returns, for example, "120 GB RAM, 1 × 40 GB GPU memory". No line break can separate a number from its unit. */
export const memoryText = ({
  memoryGb,
  gpuCount,
  gpuMemoryGb,
}: Pick<VmType, 'memoryGb' | 'gpuCount' | 'gpuMemoryGb'>): string =>
  `${count(memoryGb)}\u00a0GB RAM, ${gpuCount}\u00a0×\u00a0${count(gpuMemoryGb)}\u00a0GB GPU memory`

/** Formats bytes in GiB, the unit in which storage is billed; a dash if the size is not known. */
export const storedText = (bytes: number): string =>
  bytes === 0 ? '–' : `${oneDecimal.format(bytes / 1024 ** 3)}\u00a0GiB`
