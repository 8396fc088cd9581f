import type {
  Event,
  Operation,
  RouteAnswer,
  RouteBody,
  RouteId,
  RouteParams,
  RouteQuery,
} from '@slipway/contract'
import { type CallInput, callRoute, type LooseInput, type OrUndefined, requestOf, routeLine } from './call.ts'
import { type EventStreamOptions, eventStream } from './events.ts'
import { eachItem, type ListId, type ListItem } from './pages.ts'
import { routePaths } from './route-paths.ts'
import { type CallOptions, type ClientOptions, createTransport, type Transport } from './transport.ts'
import { type Finished, type WaitOptions, waitForOperation } from './wait.ts'

type QueryPart<Id extends RouteId> = [RouteQuery<Id>] extends [undefined]
  ? unknown
  : OrUndefined<RouteQuery<Id>>

/** The members of the path, and those of the query beside them. */
export type Target<Id extends RouteId> = RouteParams<Id> & QueryPart<Id>

/**
 * `(target, body, options)`: `target` names the resource (path and query), `body` is what to write. Routes without
 * one of them leave it out; a list without required members may leave `target` out.
 */
export type Method<Id extends RouteId> = [RouteBody<Id>] extends [undefined]
  ? Record<never, never> extends Target<Id>
    ? (target?: Target<Id>, options?: CallOptions) => Promise<RouteAnswer<Id>>
    : (target: Target<Id>, options?: CallOptions) => Promise<RouteAnswer<Id>>
  : keyof RouteParams<Id> extends never
    ? (body: OrUndefined<RouteBody<Id>>, options?: CallOptions) => Promise<RouteAnswer<Id>>
    : (
        target: Target<Id>,
        body: OrUndefined<RouteBody<Id>>,
        options?: CallOptions,
      ) => Promise<RouteAnswer<Id>>

type ListTarget<Id extends ListId> = Omit<Target<Id>, 'page_token'>

export interface ClientCore {
  /** Calls any route by its id. The methods named after the routes do the same and read better. */
  call<Id extends RouteId>(id: Id, input: CallInput<Id>): Promise<RouteAnswer<Id>>

  /**
   * The items of a list, one page after the other as they are needed.
   *
   * @example
   * ```ts
   * for await (const vm of client.each('vmList', { project_id, states: 'STATE_RUNNING' })) {
   *   log(vm.name, vm.ssh_destination)
   * }
   * ```
   */
  each<Id extends ListId>(id: Id, target: ListTarget<Id>, options?: CallOptions): AsyncGenerator<ListItem<Id>>

  /**
   * All items of a list as an array.
   *
   * @example
   * ```ts
   * const images = await client.collect('imageList', { project_id })
   * log(images.map((image) => image.name))
   * ```
   */
  collect<Id extends ListId>(id: Id, target: ListTarget<Id>, options?: CallOptions): Promise<ListItem<Id>[]>

  /**
   * Waits until an operation has ended and gives it back with its result; throws an `ApiError` with the operation's
   * own code if it failed, and with `timed_out` if `timeoutMs` passed.
   *
   * @example
   * ```ts
   * const { operation } = await client.diskCreate(
   *   { project_id },
   *   { name: 'datasets', size: '100GiB', location: 'us-east1-a' },
   * )
   * const { result: disk } = await client.wait<Disk>({ project_id }, operation, {
   *   onProgress: ({ steps }) => log(steps.map((step) => `${step.name} ${step.state}`)),
   * })
   * log(disk.size)
   * ```
   */
  wait<Result = unknown>(
    target: { project_id: string },
    operation: Operation | string,
    options?: WaitOptions,
  ): Promise<Finished<Result>>

  /**
   * Events of a project from now on, or from after a position, without end: leave the loop or abort the signal.
   *
   * @example
   * ```ts
   * for await (const event of client.events({ project_id }, { after: 0 })) {
   *   log(event.type, event.resource_id)
   *   break
   * }
   * ```
   */
  events(target: { project_id: string }, options?: EventStreamOptions): AsyncGenerator<Event>

  /** The daily usage of a project, or of all projects of an organization, as CSV text. */
  usageCsv(
    target: Target<'projectUsage'> | Target<'organizationUsage'>,
    options?: CallOptions,
  ): Promise<string>
}

export type Client = ClientCore & { [Id in RouteId]: Method<Id> }

/**
 * A client of the service. It holds no connection and no state: make as many as you like.
 *
 * Reads are tried again when the line breaks or the service is busy; writes too, under an idempotency key that makes
 * a repetition harmless.
 *
 * @example
 * ```ts
 * const client = createClient({ baseUrl, token: accessKey })
 * const { operation } = await client.vmCreate(
 *   { project_id },
 *   {
 *     name: 'train-7',
 *     type: 'a100.1x',
 *     location: 'us-east1-a',
 *     image: 'ubuntu24.04-nvidia:latest',
 *     ssh_public_key: sshPublicKey,
 *   },
 * )
 * const { result: vm } = await client.wait<Vm>({ project_id }, operation)
 * log(`ssh ${vm.ssh_destination}`)
 * await client.vmDelete({ project_id, vm_id: vm.id })
 * ```
 */
export function createClient(options: ClientOptions): Client {
  const transport = createTransport(options)
  const core: ClientCore = {
    call: (id, input) => callRoute(transport, id, input as LooseInput),
    each: (id, target, callOptions) =>
      eachItem((page_token) =>
        callRoute(transport, id, { ...splitTarget(id, { ...target, page_token }), ...callOptions }),
      ) as AsyncGenerator<ListItem<typeof id>>,
    async collect(id, target, callOptions) {
      const items: ListItem<typeof id>[] = []
      for await (const item of core.each(id, target, callOptions)) items.push(item)
      return items
    },
    wait: (target, operation, waitOptions = {}) =>
      waitForOperation(transport, target.project_id, operation, waitOptions),
    events: (target, streamOptions = {}) => eventStream(transport, target.project_id, streamOptions),
    usageCsv: (target, callOptions) => {
      const id = 'project_id' in target ? 'projectUsage' : 'organizationUsage'
      const request = requestOf(id, { ...splitTarget(id, target), ...callOptions })
      return transport.send({ ...request, headers: { accept: 'text/csv' } }, (response) => response.text())
    },
  }
  return Object.assign(core, routeMethods(transport)) as unknown as Client
}

/** One method per route, told apart by what their lines say: a body, path members, both or neither. */
function routeMethods(transport: Transport): Record<string, unknown> {
  const methods = Object.keys(routePaths).map((key) => {
    const id = key as RouteId
    const { hasBody, paramNames } = routeLine(id)
    const call = (target: object, body?: unknown, options?: CallOptions) =>
      callRoute(transport, id, { ...splitTarget(id, target), body, ...options })
    if (hasBody && paramNames.length > 0) return [id, call]
    if (hasBody) return [id, (body: unknown, options?: CallOptions) => call({}, body, options)]
    return [id, (target: object = {}, options?: CallOptions) => call(target, undefined, options)]
  })
  return Object.fromEntries(methods)
}

function splitTarget(
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
