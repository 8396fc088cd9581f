import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../errors/cli-error.ts'
import { type Context, readContexts } from './contexts.ts'

export interface GlobalFlags {
  apiUrl?: string
  accessKey?: string
  project?: string
  context?: string
  output?: string
  quiet?: boolean
  header?: boolean
  color?: boolean
}

/** The service and the credentials, as determined by flags, environment variables and files. */
export interface Settings {
  apiUrl: string
  accessKey: string
  operatorKey: string
  project: string
  /** The context that a stored session belongs to; empty if none is used. */
  contextName: string
  context: Context | undefined
}

/** Uses flags first, then environment variables, then the chosen context, then the file of a local server. */
export function resolveSettings(flags: GlobalFlags, env: NodeJS.ProcessEnv, folder: string): Settings {
  const { name, context } = chooseContext(flags, env, folder)
  const apiUrl = (flags.apiUrl ?? env.SLIPWAY_API_URL ?? context?.api_url ?? '').replace(/\/+$/, '')
  if (!apiUrl) {
    throw new UsageError('Not logged in.', [
      'Log in with `slipway login`, or set SLIPWAY_API_URL and SLIPWAY_ACCESS_KEY.',
    ])
  }
  if (!/^https?:$/.test(URL.canParse(apiUrl) ? new URL(apiUrl).protocol : '')) {
    throw new UsageError(`${apiUrl} is not an HTTP URL. Expected http://… or https://…`)
  }
  // A stored credential is sent only to the service that issued it.
  const own = context && sameOrigin(context.api_url, apiUrl) ? context : undefined
  return {
    apiUrl,
    accessKey: flags.accessKey ?? env.SLIPWAY_ACCESS_KEY ?? own?.access_key ?? '',
    operatorKey: flags.accessKey ?? env.SLIPWAY_OPERATOR_KEY ?? own?.operator_key ?? '',
    project: flags.project ?? env.SLIPWAY_PROJECT ?? projectOf(own, flags, env),
    contextName: own ? name : '',
    context: own,
  }
}

/** Returns the project of a context, or an empty string if the key comes from another source. */
function projectOf(context: Context | undefined, flags: GlobalFlags, env: NodeJS.ProcessEnv): string {
  const key = flags.accessKey ?? env.SLIPWAY_ACCESS_KEY
  if (key && key !== context?.access_key) return ''
  return context?.project ?? ''
}

function chooseContext(flags: GlobalFlags, env: NodeJS.ProcessEnv, folder: string) {
  const file = readContexts(env)
  const wanted = flags.context ?? env.SLIPWAY_CONTEXT
  const name = wanted ?? file.current
  const context = file.contexts[name]
  if (wanted && !context) {
    throw new UsageError(`Unknown context ${wanted}.`, [
      `Available: ${Object.keys(file.contexts).join(', ') || 'none; log in with `slipway login`'}`,
    ])
  }
  return context ? { name, context } : { name: '', context: localServer(folder) }
}

/** Reads the file that a local server writes for its first user. */
export function readCredentialsFile(path: string): Context {
  const file = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
  if (!file.api_url) throw new UsageError(`${path} has no api_url.`)
  if (!file.access_key && !file.operator_key)
    throw new UsageError(`${path} has neither an access_key nor an operator_key.`)
  return {
    api_url: file.api_url,
    ...(file.access_key && { access_key: file.access_key }),
    ...(file.operator_key && { operator_key: file.operator_key }),
    ...(file.project_id && { project: file.project_id }),
  }
}

function localServer(folder: string): Context | undefined {
  try {
    return readCredentialsFile(join(folder, '.slipway', 'credentials.json'))
  } catch {
    return undefined
  }
}

function sameOrigin(a: string, b: string): boolean {
  try {
    return new URL(a).origin === new URL(b).origin
  } catch {
    return false
  }
}
