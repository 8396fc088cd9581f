import { command } from '../../core/command.ts'
import { changeContext, readContexts } from '../../core/contexts.ts'
import { idOf } from '../../core/resource.ts'
import { NotFound } from '../../errors/cli-error.ts'
import { projects } from '../project/resource.ts'

export const contextProject = command<{ project: string }>({
  name: 'project',
  summary: 'set the project of the current context',
  arguments: [{ syntax: '<project>', description: 'name or id of the project', complete: 'project' }],
  examples: ['slipway context project research'],
  async run(cli, input) {
    const { current } = readContexts(cli.env)
    if (!current) throw new NotFound('You are not logged in.', ['Log in with `slipway login`.'])
    const project = await idOf(cli, projects, input.project)
    const { name } = await cli.client.projectGet({ project_id: project })
    changeContext(cli.env, current, (context) => context && { ...context, project, project_name: name })
    cli.note(`Commands now use the project ${input.project}.`)
  },
})
