import type { RouteBody, RouteId, RouteParams, RouteQuery, RouteResponse } from '@slipway/contract'
import { isUuid } from '@slipway/contract/names'
import { ApiError } from './errors.ts'
import { routePaths } from './route-paths.ts'
import type { CallOptions, RequestParts, Transport } from './transport.ts'

/** Fields with the value undefined are omitted, so that callers can pass optional values unchanged. */
export type OrUndefined<T> = { [K in keyof T]: undefined extends T[K] ? T[K] | undefined : T[K] }
type Part<Key extends string, T> = [T] extends [undefined]
  ? { [K in Key]?: undefined }
  : Partial<T> extends T
    ? { [K in Key]?: OrUndefined<T> | undefined }
    : { [K in Key]: OrUndefined<T> }
type Params<Id extends RouteId> = keyof RouteParams<Id> extends never ? undefined : RouteParams<Id>

/** `{params, query, body}` for the parts that the route has, and the options of every call. */
export type CallInput<Id extends RouteId> = Part<'params', Params<Id>> &
  Part<'query', RouteQuery<Id>> &
  Part<'body', RouteBody<Id>> &
  CallOptions

export interface LooseInput extends CallOptions {
  params?: Record<string, string> | undefined
  query?: Record<string, unknown> | undefined
  body?: unknown
}

/** The data about a route in `routePaths`. */
export interface RouteLine {
  method: string
  path: string
  hasBody: boolean
  isPaged: boolean
  hasNoIdempotencyKey: boolean
  isText: boolean
  paramNames: string[]
}

export function routeLine(id: RouteId): RouteLine {
  const [method = '', path = '', ...marks] = routePaths[id].split(' ')
  const paramNames = Array.from(path.matchAll(/\{(\w+)\}/g), (match) => match[1]!)
  const has = (mark: string) => marks.includes(mark)
  return {
    method,
    path,
    hasBody: has('body'),
    isPaged: has('paged'),
    hasNoIdempotencyKey: has('session'),
    isText: has('text'),
    paramNames,
  }
}

/** True if the response of a route is one page of a list. */
export const isPaged = (id: RouteId): boolean => routeLine(id).isPaged

export function requestOf(id: RouteId, input: LooseInput): RequestParts {
  const { method, path, hasBody, hasNoIdempotencyKey, paramNames } = routeLine(id)
  let filled = path
  for (const name of paramNames) {
    filled = filled.replace(`{${name}}`, pathSegment(id, name, input.params?.[name]))
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
    hasNoIdempotencyKey,
    ...(hasBody && { body: input.body ?? {} }),
    signal,
    idempotencyKey,
    timeoutMs,
  }
}

/** Matches text that URL parsers do not change. Excludes `.`, `..` and their encoded forms. */
const plainSegment = /^[A-Za-z0-9][A-Za-z0-9_-]*$/

/**
 * Checks a value before it becomes part of the path. `fetch` resolves `..` in a URL, so an unchecked value
 * could call another route: deleting an SSH key could become deleting its project.
 */
export function pathSegment(id: string, name: string, given: unknown): string {
  const value = String(given ?? '')
  if (name.endsWith('_id') ? isUuid(value) : plainSegment.test(value)) return value
  const expected = name.endsWith('_id') ? 'a UUID' : 'a name of letters, digits, _ and -'
  const message = `must be ${expected}${value === '' ? '' : `, not ${JSON.stringify(value)}`}`
  throw new ApiError({
    code: 'invalid_argument',
    message: `The request ${id} was not sent: ${name} ${message}.`,
    details: [{ field: name, message }],
  })
}

export async function callRoute<Id extends RouteId>(
  transport: Transport,
  id: Id,
  input: LooseInput,
): Promise<RouteResponse<Id>> {
  const read = routeLine(id).isText ? (response: Response) => response.text() : readJson
  return transport.send(requestOf(id, input), read) as Promise<RouteResponse<Id>>
}

export async function readJson(response: Response): Promise<unknown> {
  const text = await response.text()
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ApiError({
      code: 'unexpected_answer',
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? '',
      message: `${new URL(response.url).origin} sent a response that is not JSON. Check that this is a Slipway server.`,
      cause,
    })
  }
}
