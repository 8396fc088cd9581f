import type { RouteAnswer, RouteBody, RouteId, RouteParams, RouteQuery } from '@slipway/contract'
import { ApiError } from './errors.ts'
import { routePaths } from './route-paths.ts'
import type { CallOptions, RequestParts, Transport } from './transport.ts'

/** Members that are undefined are left out, so that optional values can be passed on as they are. */
export type OrUndefined<T> = { [K in keyof T]: undefined extends T[K] ? T[K] | undefined : T[K] }
type Part<Key extends string, T> = [T] extends [undefined]
  ? { [K in Key]?: undefined }
  : Partial<T> extends T
    ? { [K in Key]?: OrUndefined<T> | undefined }
    : { [K in Key]: OrUndefined<T> }
type Params<Id extends RouteId> = keyof RouteParams<Id> extends never ? undefined : RouteParams<Id>

/** `{params, query, body}`, each where the route has it, and the options of every call. */
export type CallInput<Id extends RouteId> = Part<'params', Params<Id>> &
  Part<'query', RouteQuery<Id>> &
  Part<'body', RouteBody<Id>> &
  CallOptions

export interface LooseInput extends CallOptions {
  params?: Record<string, string> | undefined
  query?: Record<string, unknown> | undefined
  body?: unknown
}

export interface RouteLine {
  method: string
  path: string
  hasBody: boolean
  isPaged: boolean
  isSession: boolean
  paramNames: string[]
}

export function routeLine(id: RouteId): RouteLine {
  const [method = '', path = '', ...marks] = routePaths[id].split(' ')
  const paramNames = Array.from(path.matchAll(/\{(\w+)\}/g), (match) => match[1]!)
  const has = (mark: string) => marks.includes(mark)
  return { method, path, hasBody: has('body'), isPaged: has('paged'), isSession: has('session'), paramNames }
}

/** Whether the answer of a route is one page of a list. */
export const isPaged = (id: RouteId): boolean => routeLine(id).isPaged

export function requestOf(id: RouteId, input: LooseInput): RequestParts {
  const { method, path, hasBody, isSession, paramNames } = routeLine(id)
  let filled = path
  for (const name of paramNames) {
    const value = input.params?.[name]
    if (!value) throw new TypeError(`${id} needs ${name}`)
    filled = filled.replace(`{${name}}`, encodeURIComponent(value))
  }
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  const query = search.size > 0 ? `?${search}` : ''
  const { signal, idempotencyKey, timeoutMs } = input
  return {
    method,
    path: filled + query,
    isSession,
    ...(hasBody && { body: input.body ?? {} }),
    signal,
    idempotencyKey,
    timeoutMs,
  }
}

export async function callRoute<Id extends RouteId>(
  transport: Transport,
  id: Id,
  input: LooseInput,
): Promise<RouteAnswer<Id>> {
  return transport.send(requestOf(id, input), readJson) as Promise<RouteAnswer<Id>>
}

async function readJson(response: Response): Promise<unknown> {
  const text = await response.text()
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ApiError({
      code: 'unexpected_answer',
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? '',
      message: `${new URL(response.url).origin} answered with something that is not JSON: is this a Slipway server?`,
      cause,
    })
  }
}
