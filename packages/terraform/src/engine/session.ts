import type { RouteId } from '@slipway/contract'
import { type Client, createClient } from '@slipway/sdk'
import { ProblemError } from './diagnostics.ts'

/** A configured provider. */
export interface Session {
  client: Client
  /** The default project of resources; empty if none is configured. */
  projectId: string
  /** Aborted when Terraform is interrupted: waits end, but requests that were already sent are completed. */
  signal: AbortSignal
  /** Calls a route by its id. The result is untyped, because the route comes from a table. */
  call(route: RouteId, input: CallParts): Promise<unknown>
}

export interface CallParts {
  params?: Record<string, string>
  query?: Record<string, unknown>
  body?: unknown
}

export interface ProviderSettings {
  apiUrl: string
  accessKey: string
  projectId: string
}

/** A read error would abort the whole plan, so calls are retried for about 8 seconds. */
const retries = 5

export function openSession(settings: ProviderSettings, signal: AbortSignal): Session {
  const { apiUrl, accessKey, projectId } = settings
  const userAgent = 'terraform-provider-slipway'
  const client = createClient({ baseUrl: apiUrl, token: accessKey, retries, userAgent })
  return {
    client,
    projectId,
    signal,
    call: (route, parts) => client.call(route, parts as never),
  }
}

/** Returns the project of a resource or data source. */
export function projectOf(session: Session, given: unknown): string {
  const projectId = typeof given === 'string' && given !== '' ? given : session.projectId
  if (projectId) return projectId
  throw new ProblemError({
    summary: 'No project',
    detail:
      'Set project_id in the provider block, in the environment variable SLIPWAY_PROJECT_ID, or in the resource.',
    attribute: 'project_id',
  })
}
