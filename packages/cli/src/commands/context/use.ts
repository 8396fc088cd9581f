import { command } from '../../core/command.ts'
import { readContexts, writeContexts } from '../../core/contexts.ts'
import { NotFound } from '../../errors/cli-error.ts'

export const contextUse = command<{ name: string }>({
  name: 'use',
  summary: 'make a context the current one',
  arguments: [{ syntax: '<name>', description: 'name of the context', complete: 'context' }],
  examples: ['slipway context use work'],
  async run(cli, { name }) {
    const file = readContexts(cli.env)
    if (!file.contexts[name]) {
      throw new NotFound(`Unknown context ${name}.`, [
        `Available: ${Object.keys(file.contexts).join(', ') || 'none'}`,
      ])
    }
    writeContexts(cli.env, { ...file, current: name })
    cli.note(`Using ${name}.`)
  },
})
