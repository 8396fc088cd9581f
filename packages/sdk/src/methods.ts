import type {
  CustomImage,
  Disk,
  FirewallRule,
  InstanceGroup,
  Operation,
  RouteBody,
  RouteId,
  RouteParams,
  RouteQuery,
  RouteResponse,
  Snapshot,
  Vm,
} from '@slipway/contract'
import { callRoute, type OrUndefined, routeLine } from './call.ts'
import { routePaths } from './route-paths.ts'
import type { CallOptions, Transport } from './transport.ts'

type QueryPart<Id extends RouteId> = [RouteQuery<Id>] extends [undefined]
  ? unknown
  : OrUndefined<RouteQuery<Id>>

/** The path parameters, except those that are bound to the client, together with the query parameters. */
export type Target<Id extends RouteId, Bound extends string = never> = Omit<RouteParams<Id>, Bound> &
  QueryPart<Id>

declare const resultOf: unique symbol

/** An operation whose result type is known. */
export type StartedOperation<Result> = Operation & { readonly [resultOf]?: Result }

/** The result type of the operation that a route starts: null after a deletion, otherwise the resource. */
type ResultOf<Id extends RouteId> = Id extends `${string}Delete`
  ? null
  : Id extends `disk${string}`
    ? Disk
    : Id extends `firewallRule${string}`
      ? FirewallRule
      : Id extends `instanceGroup${string}`
        ? InstanceGroup
        : Id extends `customImage${string}`
          ? CustomImage
          : Id extends `snapshot${string}`
            ? Snapshot
            : Vm

/** The response of a route. The type of an operation includes its result type, which `wait` returns. */
export type MethodResult<Id extends RouteId> =
  RouteResponse<Id> extends { operation: Operation }
    ? Omit<RouteResponse<Id>, 'operation'> & { operation: StartedOperation<ResultOf<Id>> }
    : RouteResponse<Id>

/**
 * `(target, body, options)`: `target` contains the path and query parameters, and `body` is the request body.
 * If a route has no parameters or no body, its method omits that argument. For a list without required
 * parameters, `target` is optional.
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

/** Creates one method per route. Its arguments depend on whether the route has path parameters and a body. */
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
