import type {
  Disk,
  FirewallRule,
  Operation,
  RouteBody,
  RouteId,
  RouteParams,
  RouteQuery,
  RouteResponse,
  Vm,
} from '@slipway/contract'
import { callRoute, type OrUndefined, routeLine } from './call.ts'
import { routePaths } from './route-paths.ts'
import type { CallOptions, Transport } from './transport.ts'

type QueryPart<Id extends RouteId> = [RouteQuery<Id>] extends [undefined]
  ? unknown
  : OrUndefined<RouteQuery<Id>>

/** The members of the path, but for those that are bound, and those of the query beside them. */
export type Target<Id extends RouteId, Bound extends string = never> = Omit<RouteParams<Id>, Bound> &
  QueryPart<Id>

declare const resultOf: unique symbol

/** An operation that is known to end with such a result. */
export type StartedOperation<Result> = Operation & { readonly [resultOf]?: Result }

/** What an operation that a route starts ends with: nothing after a deletion, else the thing that it is about. */
type ResultOf<Id extends RouteId> = Id extends `${string}Delete`
  ? null
  : Id extends `disk${string}`
    ? Disk
    : Id extends `firewallRule${string}`
      ? FirewallRule
      : Vm

/** The answer of a route; an operation carries the type of its result, for `wait`. */
export type MethodResult<Id extends RouteId> =
  RouteResponse<Id> extends { operation: Operation }
    ? Omit<RouteResponse<Id>, 'operation'> & { operation: StartedOperation<ResultOf<Id>> }
    : RouteResponse<Id>

/**
 * `(target, body, options)`: `target` names the resource (path and query), `body` is what to write. Routes without
 * one of them leave it out; a list without required members may leave `target` out.
 */
export type Method<Id extends RouteId, Bound extends string = never> = [RouteBody<Id>] extends [undefined]
  ? Record<never, never> extends Target<Id, Bound>
    ? (target?: Target<Id, Bound>, options?: CallOptions) => Promise<MethodResult<Id>>
    : (target: Target<Id, Bound>, options?: CallOptions) => Promise<MethodResult<Id>>
  : keyof Omit<RouteParams<Id>, Bound> extends never
    ? (body: OrUndefined<RouteBody<Id>>, options?: CallOptions) => Promise<MethodResult<Id>>
    : (
        target: Target<Id, Bound>,
        body: OrUndefined<RouteBody<Id>>,
        options?: CallOptions,
      ) => Promise<MethodResult<Id>>

/** One method per route, told apart by what their lines say: a body, path members, both or neither. */
export function routeMethods(transport: Transport, bound: Record<string, string> = {}) {
  const methods = Object.keys(routePaths).map((key) => {
    const id = key as RouteId
    const { hasBody, paramNames } = routeLine(id)
    const hasParams = paramNames.some((name) => !(name in bound))
    const call = (target: object, body?: unknown, options?: CallOptions) =>
      callRoute(transport, id, { ...splitTarget(id, { ...bound, ...target }), body, ...options })
    if (hasBody && hasParams) return [id, call]
    if (hasBody) return [id, (body: unknown, options?: CallOptions) => call({}, body, options)]
    return [id, (target: object = {}, options?: CallOptions) => call(target, undefined, options)]
  })
  return Object.fromEntries(methods) as Record<string, unknown>
}

export function splitTarget(
  id: RouteId,
  target: object,
): { params: Record<string, string>; query: Record<string, unknown> } {
  const { paramNames } = routeLine(id)
  const isParam = ([name]: [string, unknown]) => paramNames.includes(name)
  const entries = Object.entries(target)
  return {
    params: Object.fromEntries(entries.filter(isParam)),
    query: Object.fromEntries(entries.filter((entry) => !isParam(entry))),
  }
}
