import { command } from '../../core/command.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { projects } from './resource.ts'

export const projectRename = command<{ ref: string; name: string }>({
  name: 'rename',
  summary: 'rename a project',
  arguments: [refArgument(projects), { syntax: '<name>', description: 'the new name' }],
  examples: ['slipway project rename research experiments'],
  async run(cli, { ref, name }) {
    const project_id = await idOf(cli, projects, ref)
    await printOne(cli, await cli.client.projectUpdate({ project_id }, { name }))
  },
})
