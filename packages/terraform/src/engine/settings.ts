import { isUuid } from '@slipway/contract/names'
import { type Attribute, unknown, type Values } from '../values/types.ts'
import type { Problem } from './diagnostics.ts'
import type { ProviderSettings } from './session.ts'

const settings = {
  api_url: 'The URL of the service. The default is the environment variable `SLIPWAY_API_URL`.',
  access_key:
    'An access key of a project or an organization. The default is the environment variable `SLIPWAY_ACCESS_KEY`, which keeps the key out of files.',
  project_id:
    'The project of resources and data sources that do not set one. The default is the environment variable `SLIPWAY_PROJECT_ID`.',
}
type Setting = keyof typeof settings

export const providerAttributes: Attribute[] = Object.entries(settings).map(([name, description]) => ({
  name,
  type: 'string',
  description,
  use: 'optional',
  isComputed: false,
  isSensitive: name === 'access_key',
}))

/** Reads the provider block and the environment. Returns the settings, or the problems. */
export function settingsFrom(config: Values, env: NodeJS.ProcessEnv): ProviderSettings | Problem[] {
  const read = (name: Setting) => {
    const value = config[name] ?? env[`SLIPWAY_${name.toUpperCase()}`] ?? ''
    return value === unknown ? '' : String(value).trim()
  }
  const [apiUrl, accessKey, projectId] = [read('api_url'), read('access_key'), read('project_id')]
  const problems = [
    missing('api_url', apiUrl) ?? wrongUrl(apiUrl),
    missing('access_key', accessKey),
    projectId !== '' && !isUuid(projectId) ? wrongProject(projectId) : undefined,
  ].filter((problem) => problem !== undefined)
  return problems.length > 0 ? problems : { apiUrl, accessKey, projectId }
}

const missing = (attribute: Setting, value: string): Problem | undefined =>
  value === ''
    ? {
        summary: `${attribute} is missing`,
        detail: `Set ${attribute} in the provider block, or the environment variable SLIPWAY_${attribute.toUpperCase()}.`,
        attribute,
      }
    : undefined

/** The access key is sent with every request, so connections without TLS are allowed only on this machine. */
function wrongUrl(text: string): Problem | undefined {
  const summary = 'Invalid api_url'
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    return { summary, detail: `${text} is not an HTTP URL. Expected https://…`, attribute: 'api_url' }
  const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)
  if (url.protocol === 'https:' || isLocal) return undefined
  const detail = `${text} does not use TLS, and the access key would be readable on the network. Use https://…`
  return { summary, detail, attribute: 'api_url' }
}

const wrongProject = (projectId: string): Problem => ({
  summary: 'Invalid project_id',
  detail: `${projectId} is not the id of a project. Expected a UUID; slipway project list shows the ids.`,
  attribute: 'project_id',
})
