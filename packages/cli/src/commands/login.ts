import { resolve } from 'node:path'
import { isUuid } from '@slipway/contract/names'
import { ApiError, logIn } from '@slipway/sdk'
import { askChoice, askSecret, askText } from '../core/ask.ts'
import type { Cli } from '../core/cli.ts'
import { clientOf } from '../core/client.ts'
import { command } from '../core/command.ts'
import { type Context, contextFilePath, readContexts, writeContexts } from '../core/contexts.ts'
import { lightFetch } from '../core/fetch.ts'
import { resolveAmong } from '../core/names.ts'
import { readCredentialsFile } from '../core/settings.ts'
import { UsageError } from '../errors/cli-error.ts'
import { readTextFile } from '../io.ts'
import { callerText, roleText } from './identity.ts'

interface LoginInput {
  name: string
  email?: string
  passwordStdin?: boolean
  totp?: string
  credentials?: string
}

export const login = command<LoginInput>({
  name: 'login',
  summary: 'log in and save the login as a context',
  details:
    'Logs in with an access key (--access-key), with an e-mail address and a password, or with the credentials file of a local ' +
    'server. The operator key in that file is also saved, for `slipway admin`. ' +
    'On a terminal, the command asks for missing values. Contexts are stored in ~/.config/slipway/contexts.json, which only you can read.',
  options: [
    {
      flags: '--name <context>',
      description: 'name of the context',
      default: 'default',
      complete: 'context',
    },
    { flags: '--email <email>', description: 'e-mail address, to log in with a password' },
    { flags: '--password-stdin', description: 'read the password from standard input' },
    { flags: '--totp <code>', description: 'two-factor code, or a recovery code' },
    { flags: '--credentials <file>', description: 'credentials.json of a local server', complete: 'file' },
  ],
  examples: [
    'slipway login',
    'slipway login --api-url https://slipway.example.com --access-key "$KEY"',
    'slipway login --name work --email ada@example.com --password-stdin < password.txt',
    'slipway login --credentials .slipway/credentials.json',
  ],
  async run(cli, input) {
    const context = await withProjectName(await obtainContext(cli, input))
    const identity = await identityLines(context)
    const file = readContexts(cli.env)
    file.contexts[input.name] = context
    file.current = input.name
    writeContexts(cli.env, file)
    cli.say(`Logged in to ${context.api_url} as ${identity.join('\n')}`)
    cli.say(`The context ${input.name} is stored in ${contextFilePath(cli.env)}.`)
  },
})

/** Describes the identities that commands now use, one line for each stored credential. */
async function identityLines({ api_url, ...context }: Context): Promise<string[]> {
  const callerOf = async (token: string) => (await clientOf(api_url, token).rootGet()).caller
  const { access_key, operator_key, session, project_name } = context
  const token = access_key ?? session?.accessToken
  const lines: string[] = []
  if (token) {
    const caller = await callerOf(token)
    const where = project_name ? `, project ${project_name}` : ''
    const role = caller.role ? ` (${roleText(caller.role)})` : ''
    lines.push(`${callerText(caller, token)}${where}${role}.`)
  }
  if (operator_key) {
    const operator = callerText(await callerOf(operator_key), operator_key)
    const line = `${operator} (${roleText('operator')}).`
    lines.push(token ? `The context also stores the ${line}` : line)
  }
  return lines
}

/** Adds the name of the project, so that lists of contexts can show it. */
async function withProjectName(context: Context): Promise<Context> {
  const token = context.access_key ?? context.session?.accessToken
  if (!isUuid(context.project) || !token) return context
  const client = clientOf(context.api_url, token)
  const found = await client.projectGet({ project_id: context.project }).catch(() => undefined)
  return found ? { ...context, project_name: found.name } : context
}

async function obtainContext(cli: Cli, input: LoginInput): Promise<Context> {
  if (input.credentials) return readCredentialsFile(resolve(cli.io.cwd, input.credentials))
  const api_url = (cli.flags.apiUrl ?? cli.env.SLIPWAY_API_URL ?? (await askUrl(cli))).replace(/\/+$/, '')
  const accessKey = cli.flags.accessKey ?? (input.email ? undefined : cli.env.SLIPWAY_ACCESS_KEY)
  if (accessKey) return contextOfKey(cli, api_url, accessKey)
  if (input.email)
    return contextOfPassword(cli, api_url, input.email, await obtainPassword(cli, input), input.totp)
  if (!cli.isInteractive)
    throw new UsageError('No credential given. Use --access-key, --email or --credentials.')
  const method = await askChoice(cli, 'How do you want to log in?', [
    { value: 'key', label: 'Access key', hint: 'from the console, under Access keys' },
    { value: 'password', label: 'E-mail and password' },
  ])
  if (method === 'key') return contextOfKey(cli, api_url, await askSecret(cli, 'Access key'))
  return contextOfPassword(cli, api_url, await askText(cli, 'E-mail'), await askSecret(cli, 'Password'))
}

async function askUrl(cli: Cli): Promise<string> {
  if (!cli.isInteractive) throw new UsageError('No service URL given. Use --api-url or SLIPWAY_API_URL.')
  return askText(cli, 'URL of the service', {
    initial: 'http://127.0.0.1:8080',
    validate: (text) => (URL.canParse(text) ? undefined : 'That is not a URL.'),
  })
}

async function obtainPassword(cli: Cli, input: LoginInput): Promise<string> {
  if (input.passwordStdin) return (await readTextFile(cli.io, '-')).replace(/\r?\n$/, '')
  if (!cli.isInteractive) throw new UsageError('Pass the password with --password-stdin.')
  return askSecret(cli, 'Password')
}

async function contextOfKey(cli: Cli, api_url: string, key: string): Promise<Context> {
  const client = clientOf(api_url, key)
  const { caller } = await client.rootGet()
  if (caller.kind === 'operator_key') return { api_url, operator_key: key }
  const project = cli.flags.project ?? caller.project_id
  return { api_url, access_key: key, ...(project && { project }) }
}

async function contextOfPassword(
  cli: Cli,
  api_url: string,
  email: string,
  password: string,
  totpCode?: string,
): Promise<Context> {
  const logInWith = (code?: string) =>
    logIn({ baseUrl: api_url, fetch: lightFetch, email, password, ...(code && { totpCode: code }) })
  const session = await logInWith(totpCode).catch(async (error) => {
    if (!(error instanceof ApiError && error.needsTotp && cli.isInteractive)) throw error
    return logInWith(await askText(cli, 'Authentication code'))
  })
  const projects = await clientOf(api_url, session.token).projectList()
  const project = await chooseProject(cli, projects)
  return { api_url, email, session: session.tokens(), ...(project && { project }) }
}

async function chooseProject(cli: Cli, projects: { id: string; name: string }[]): Promise<string> {
  const wanted = cli.flags.project ?? cli.env.SLIPWAY_PROJECT
  if (isUuid(wanted)) return wanted
  if (wanted) return resolveAmong('project', wanted, projects, (project) => project).id
  if (projects.length <= 1 || !cli.isInteractive) return projects[0]?.id ?? ''
  return askChoice(
    cli,
    'Which project?',
    projects.map(({ id, name }) => ({ value: id, label: name, hint: id })),
  )
}
