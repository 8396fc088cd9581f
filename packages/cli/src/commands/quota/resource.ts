import type { Quota } from '@slipway/sdk'
import type { Column } from '../../output/print.ts'

export const quotaColumns: Column<Quota>[] = [
  { name: 'name', value: (quota) => quota.name },
  { name: 'used', value: (quota) => quota.used, align: 'right' },
  { name: 'max', value: (quota) => quota.max, align: 'right' },
  { name: 'available', value: (quota) => quota.available, align: 'right' },
]
