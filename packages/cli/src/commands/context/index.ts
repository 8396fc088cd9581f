import type { GroupSpec } from '../../core/command.ts'
import { contextDelete } from './delete.ts'
import { contextList } from './list.ts'
import { contextProject } from './project.ts'
import { contextUse } from './use.ts'

export const context: GroupSpec = {
  name: 'context',
  summary: 'saved logins, each with a service and a project',
  commands: [contextList, contextUse, contextProject, contextDelete],
}
