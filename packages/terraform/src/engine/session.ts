import type { RouteId } from '@slipway/contract'
import { type Client, createClient } from '@slipway/sdk'
import { ProblemError } from './diagnostics.ts'

/** A configured provider: who calls which service, and until when. */
export interface Session {
  client: Client
  /** The project of resources that name none; empty if the configuration has none. */
  projectId: string
  /** Aborted when Terraform is interrupted: waiting ends, requests that were sent are still completed. */
  signal: AbortSignal
  /** Calls a route by its id. The rows of resources name routes, so the types of single routes are of no use here. */
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

/** An error while reading would stop the whole plan, so calls are repeated for about 8 seconds. */
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

/** The project of a resource or data source. */
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
