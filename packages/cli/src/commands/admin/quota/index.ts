import type { GroupSpec } from '../../../core/command.ts'
import { adminQuotaList } from './list.ts'
import { adminQuotaSet } from './set.ts'

export const adminQuota: GroupSpec = {
  name: 'quota',
  summary: 'quotas of a project',
  commands: [adminQuotaList, adminQuotaSet],
}
