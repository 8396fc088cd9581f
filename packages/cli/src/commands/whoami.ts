import { isUuid } from '@slipway/contract/names'
import type { Project, RouteAnswer } from '@slipway/sdk'
import type { Cli } from '../core/cli.ts'
import { command } from '../core/command.ts'
import { printOne } from '../output/print.ts'
import { roleWord } from './key/roles.ts'

export const whoami = command({
  name: 'whoami',
  summary: 'show the service and who you are to it',
  examples: ['slipway whoami', 'slipway whoami -o json'],
  async run(cli) {
    const client = cli.settings.accessKey || cli.settings.context?.session ? cli.client : cli.operator
    const root = await client.rootGet()
    const project_id = cli.settings.project || root.caller.project_id
    const project = cli.format.kind === 'table' ? await readProject(cli, project_id) : undefined
    const role = project && (await roleOf(cli, root.caller, project.organization_id))
    await printOne(cli, root, ({ caller, version, api_version }) => [
      ['Service', `${cli.settings.apiUrl} (${version}, API ${api_version})`],
      ['Caller', `${caller.kind.replace('_', ' ')} ${caller.email || caller.id}`],
      ['Role', caller.is_operator ? 'operator' : roleWord(caller.role) || role || '-'],
      // The id alone where the caller cannot read it.
      ['Project', project ? `${project.name} (${project_id})` : project_id || '-'],
      ['Context', cli.settings.contextName || '-'],
    ])
  },
})

/** Reads the project that commands are about. */
const readProject = async (cli: Cli, project_id: string): Promise<Project | undefined> =>
  isUuid(project_id) ? await cli.client.projectGet({ project_id }).catch(() => undefined) : undefined

/** A user's role is that in the organization of the project; a key has its own. */
async function roleOf(
  cli: Cli,
  { kind, id, is_operator }: RouteAnswer<'rootGet'>['caller'],
  organization_id: string,
): Promise<string | undefined> {
  if (kind !== 'user' || is_operator) return undefined
  const members = await cli.client.collect('memberList', { organization_id }).catch(() => [])
  return members.find(({ user_id }) => user_id === id)?.role
}
