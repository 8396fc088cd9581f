import { isUuid } from '@slipway/contract/names'
import type { Project } from '@slipway/sdk'
import type { Cli } from '../core/cli.ts'
import { clientOf } from '../core/client.ts'
import { command } from '../core/command.ts'
import { printOne } from '../output/print.ts'
import { type Caller, callerText, organizationRole, roleText } from './identity.ts'

export const whoami = command({
  name: 'whoami',
  summary: 'show the current service and identity',
  details: 'Shows which credentials are used, where they come from, and what each of them allows.',
  examples: ['slipway whoami', 'slipway whoami -o json'],
  async run(cli) {
    const { settings, format } = cli
    const isOperatorOnly = !settings.accessKey && !settings.context?.session
    const root = await (isOperatorOnly ? cli.operator : cli.client).rootGet()
    const operator = isOperatorOnly ? undefined : await otherOperator(cli)
    const project_id = settings.project || root.caller.project_id
    const project = format.kind === 'table' ? await readProject(cli, project_id) : undefined
    const role = project && (await roleIn(cli, root.caller, project.organization_id))
    const operatorSource = sourceOf(cli, 'SLIPWAY_OPERATOR_KEY')
    const key = isOperatorOnly ? settings.operatorKey : settings.accessKey
    const source = isOperatorOnly ? operatorSource : sourceOf(cli, 'SLIPWAY_ACCESS_KEY')
    await printOne(cli, { ...root, ...(operator && { operator }) }, ({ caller, version, api_version }) => [
      ['Service', `${settings.apiUrl} (${version}, API ${api_version})`],
      ['Caller', `${callerText(caller, key)}, from ${source}`],
      ['Role', roleText(caller.is_operator ? 'operator' : caller.role || role || '')],
      // If the caller cannot read the project, only its id is shown.
      ['Project', project ? `${project.name} (${project_id})` : project_id || '-'],
      ...(operator
        ? ([
            ['Admin caller', `${callerText(operator, settings.operatorKey)}, from ${operatorSource}`],
            ['Admin role', roleText('operator')],
          ] as [string, string][])
        : []),
      ['Context', settings.contextName || '-'],
    ])
  },
})

/** Returns the caller of `slipway admin`, if a separate operator key is set. */
async function otherOperator({ settings }: Cli): Promise<Caller | undefined> {
  if (!settings.operatorKey || settings.operatorKey === settings.accessKey) return undefined
  return (await clientOf(settings.apiUrl, settings.operatorKey).rootGet()).caller
}

/** Returns where a credential comes from. Checks the sources in the same order as the settings do. */
function sourceOf({ flags, env, settings }: Cli, variable: string): string {
  if (flags.accessKey) return '--access-key'
  if (env[variable]) return variable
  return settings.contextName ? `context ${settings.contextName}` : '.slipway/credentials.json'
}

const readProject = async (cli: Cli, project_id: string): Promise<Project | undefined> =>
  isUuid(project_id) ? await cli.client.projectGet({ project_id }).catch(() => undefined) : undefined

const roleIn = async (cli: Cli, caller: Caller, organization_id: string): Promise<string | undefined> =>
  caller.kind === 'user' && !caller.is_operator
    ? organizationRole(cli.client, caller, organization_id)
    : undefined
