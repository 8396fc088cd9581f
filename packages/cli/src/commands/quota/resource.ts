import type { OrganizationQuota } from '@slipway/sdk'
import type { Column } from '../../output/print.ts'
import { bar } from '../../output/text.ts'

/** Quotas of projects have the same fields, so lists of them use these columns too. */
export const quotaColumns: Column<OrganizationQuota>[] = [
  { name: 'name', value: (quota) => quota.name },
  { name: 'used', value: (quota) => quota.used, align: 'right' },
  { name: 'max', value: (quota) => quota.max, align: 'right' },
  { name: 'available', value: (quota) => quota.available, align: 'right' },
]

export const shareColumn: Column<OrganizationQuota> = {
  name: 'share',
  value: ({ max, available }) => bar(max > 0 ? (max - available) / max : 0, 20) || ' ',
  hideOrder: 1,
}
