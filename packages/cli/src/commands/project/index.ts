import type { Project } from '@slipway/sdk'
import { labelCommand } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { selectorOption } from '../../core/labels.ts'
import { projectBudget } from './budget.ts'
import { projectCreate } from './create.ts'
import { projectRename } from './rename.ts'
import { projects } from './resource.ts'

export const project: GroupSpec = {
  name: 'project',
  summary: 'projects and their budgets',
  commands: [
    listCommand(projects, {
      options: [selectorOption],
      list: (cli, { selector }: { selector?: string }) => projects.list(cli, { label_selector: selector }),
    }),
    showCommand(projects, (cli, project_id) => cli.client.projectGet({ project_id })),
    projectCreate,
    projectRename,
    labelCommand<Project>({
      resource: projects,
      get: (cli, project_id) => cli.client.projectGet({ project_id }),
      change: (cli, project_id, { labels }) => cli.client.projectUpdate({ project_id }, { labels }),
    }),
    deleteCommand(projects, async (cli, project_id) => {
      await cli.client.projectDelete({ project_id })
      return {}
    }),
    projectBudget,
  ],
}
