import type { GroupSpec } from '../../core/command.ts'
import { operationList } from './list.ts'
import { operationShow } from './show.ts'
import { operationWait } from './wait.ts'
import { operationWatch } from './watch.ts'

export const operation: GroupSpec = {
  name: 'operation',
  summary: 'operations, current and past',
  commands: [operationList, operationShow, operationWait, operationWatch],
}
