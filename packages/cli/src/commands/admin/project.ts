import type { ListItem } from '@slipway/sdk'
import { command, type GroupSpec } from '../../core/command.ts'
import { type Column, printList } from '../../output/print.ts'

const columns: Column<ListItem<'adminProjectList'>>[] = [
  { name: 'name', value: (project) => project.name },
  { name: 'organization', value: (project) => project.organization_name },
  { name: 'id', value: (project) => project.id },
]

const adminProjectList = command({
  name: 'list',
  summary: 'list the projects of all organizations',
  columns,
  examples: ['slipway admin project list', 'slipway admin project list -o json'],
  async run(cli) {
    await printList(cli, await cli.operator.collect('adminProjectList', {}), columns, 'adminProjectList')
  },
})

export const adminProject: GroupSpec = {
  name: 'project',
  summary: 'projects of all organizations',
  commands: [adminProjectList],
}
