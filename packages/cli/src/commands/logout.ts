import { clientOf } from '../core/client.ts'
import { command } from '../core/command.ts'
import { changeContext, readContexts } from '../core/contexts.ts'
import { NotFound } from '../errors/cli-error.ts'

export const logout = command<{ name?: string }>({
  name: 'logout',
  summary: 'log out and delete the context',
  arguments: [
    { syntax: '[name]', description: 'name of the context (default: the current one)', complete: 'context' },
  ],
  examples: ['slipway logout', 'slipway logout work'],
  async run(cli, input) {
    const file = readContexts(cli.env)
    const name = input.name ?? file.current
    const context = file.contexts[name]
    if (!context) throw new NotFound(name ? `Unknown context ${name}.` : 'You are not logged in.')
    if (context.session) {
      const client = clientOf(context.api_url, '')
      // Logging out works even if the service cannot be reached.
      await client.authRevoke({ refresh_token: context.session.refreshToken }).catch(() => undefined)
    }
    changeContext(cli.env, name, () => undefined)
    const { current } = readContexts(cli.env)
    cli.say(
      `Logged out of ${name}. ${current ? `The current context is ${current}.` : 'No context is left. Log in with `slipway login`.'}`,
    )
  },
})
