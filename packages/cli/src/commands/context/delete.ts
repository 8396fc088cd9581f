import { command } from '../../core/command.ts'
import { changeContext, readContexts } from '../../core/contexts.ts'
import { NotFound } from '../../errors/cli-error.ts'

export const contextDelete = command<{ name: string }>({
  name: 'delete',
  summary: 'delete a context',
  arguments: [{ syntax: '<name>', description: 'name of the context', complete: 'context' }],
  examples: ['slipway context delete work'],
  async run(cli, { name }) {
    if (!readContexts(cli.env).contexts[name]) throw new NotFound(`Unknown context ${name}.`)
    changeContext(cli.env, name, () => undefined)
  },
})
