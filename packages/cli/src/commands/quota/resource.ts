import type { OrganizationQuota } from '@slipway/sdk'
import type { Column } from '../../output/print.ts'
import { bar } from '../../output/text.ts'

/** Also fits the quotas of a project, which are a subset. */
export const quotaColumns: Column<OrganizationQuota>[] = [
  { name: 'name', value: (quota) => quota.name },
  { name: 'used', value: (quota) => quota.used, align: 'right' },
  { name: 'max', value: (quota) => quota.max, align: 'right' },
  { name: 'available', value: (quota) => quota.available, align: 'right' },
]

export const shareColumn: Column<OrganizationQuota> = {
  name: 'share',
  value: ({ max, available }) => bar(max > 0 ? (max - available) / max : 0, 20) || ' ',
  spare: 1,
}
