import { command, type GroupSpec } from '../../core/command.ts'
import { printList } from '../../output/print.ts'

const adminProjectList = command({
  name: 'list',
  summary: 'list the projects of all organizations',
  examples: ['slipway admin project list', 'slipway admin project list -o json'],
  async run(cli) {
    await printList(cli, await cli.operator.collect('adminProjectList', {}), [
      { name: 'name', value: (project) => project.name },
      { name: 'organization', value: (project) => project.organization_name },
      { name: 'id', value: (project) => project.id },
    ])
  },
})

export const adminProject: GroupSpec = {
  name: 'project',
  summary: 'projects of all organizations',
  commands: [adminProjectList],
}
