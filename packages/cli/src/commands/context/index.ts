import { command, type GroupSpec } from '../../core/command.ts'
import { changeContext, readContexts, writeContexts } from '../../core/contexts.ts'
import { idOf } from '../../core/resource.ts'
import { NotFound } from '../../errors/cli-error.ts'
import { printList } from '../../output/print.ts'
import { projects } from '../project/resource.ts'

const name = { syntax: '<name>', description: 'name of the context', complete: 'context' } as const

export const context: GroupSpec = {
  name: 'context',
  summary: 'services and projects that you are logged in to',
  commands: [
    command({
      name: 'list',
      summary: 'list contexts',
      examples: ['slipway context list'],
      async run(cli) {
        const { current, contexts } = readContexts(cli.env)
        const rows = Object.entries(contexts).map(([name, context]) => ({
          name,
          is_current: name === current,
          api_url: context.api_url,
          project: context.project ?? '',
          as:
            context.email ??
            (context.access_key ? `key ${context.access_key.slice(0, 12)}…` : 'operator key'),
        }))
        await printList(cli, rows, [
          { name: 'current', value: (row) => (row.is_current ? '*' : ' ') },
          { name: 'name', value: (row) => row.name },
          { name: 'api_url', value: (row) => row.api_url },
          { name: 'as', value: (row) => row.as },
          { name: 'project', value: (row) => row.project, spare: 1 },
        ])
      },
    }),
    command<{ name: string }>({
      name: 'use',
      summary: 'make a context the current one',
      arguments: [name],
      examples: ['slipway context use work'],
      async run(cli, input) {
        const file = readContexts(cli.env)
        if (!file.contexts[input.name]) {
          throw new NotFound(`There is no context ${input.name}.`, [Object.keys(file.contexts).join(', ')])
        }
        writeContexts(cli.env, { ...file, current: input.name })
        cli.note(`Using ${input.name}.`)
      },
    }),
    command<{ project: string }>({
      name: 'project',
      summary: 'choose the project of the current context',
      arguments: [{ syntax: '<project>', description: 'name or id of the project', complete: 'project' }],
      examples: ['slipway context project research'],
      async run(cli, input) {
        const { current } = readContexts(cli.env)
        if (!current) throw new NotFound('You are not logged in.', ['Log in with `slipway login`.'])
        const project = await idOf(cli, projects, input.project)
        changeContext(cli.env, current, (context) => context && { ...context, project })
        cli.note(`Commands are about ${input.project} from here on.`)
      },
    }),
    command<{ name: string }>({
      name: 'delete',
      summary: 'forget a context',
      arguments: [name],
      examples: ['slipway context delete work'],
      async run(cli, input) {
        if (!readContexts(cli.env).contexts[input.name])
          throw new NotFound(`There is no context ${input.name}.`)
        changeContext(cli.env, input.name, () => undefined)
      },
    }),
  ],
}
