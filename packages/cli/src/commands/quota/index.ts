import type { GroupSpec } from '../../core/command.ts'
import { quotaList } from './list.ts'

export const quota: GroupSpec = {
  name: 'quota',
  summary: 'quotas of the project',
  commands: [quotaList],
}
