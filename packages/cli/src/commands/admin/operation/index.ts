import type { GroupSpec } from '../../../core/command.ts'
import { adminOperationAbandon } from './abandon.ts'
import { adminOperationList } from './list.ts'
import { adminOperationRetry } from './retry.ts'
import { adminOperationShow } from './show.ts'

export const adminOperation: GroupSpec = {
  name: 'operation',
  summary: 'operations of all tenants',
  commands: [adminOperationList, adminOperationShow, adminOperationRetry, adminOperationAbandon],
}
