import type { Event, RouteId, RouteResponse } from '@slipway/contract'
import type { CallInput } from './call.ts'
import type { EventStreamOptions } from './events.ts'
import type { StartedOperation, Target } from './methods.ts'
import type { ListId, ListItem } from './pages.ts'
import type { CallOptions } from './transport.ts'
import type { Finished, WaitOptions } from './wait.ts'

type ListTarget<Id extends ListId> = Omit<Target<Id>, 'page_token'>

export interface ClientCore {
  /** Calls a route by its id. Each route also has a method with its name. */
  call<Id extends RouteId>(id: Id, input: CallInput<Id>): Promise<RouteResponse<Id>>

  /**
   * Iterates over the items of a list and loads each page when it is needed.
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
   * Returns all items of a list as an array.
   *
   * @example
   * ```ts
   * const images = await client.collect('imageList', { project_id })
   * log(images.map((image) => image.name))
   * ```
   */
  collect<Id extends ListId>(id: Id, target: ListTarget<Id>, options?: CallOptions): Promise<ListItem<Id>[]>

  /**
   * Waits until an operation ends and returns it with its typed result. Throws an `ApiError` with the
   * operation's error code if it failed, or with `timed_out` after `timeoutMs`.
   *
   * @example
   * ```ts
   * const { operation } = await client.diskCreate(
   *   { project_id },
   *   { name: 'datasets', size: '100GiB', location: 'us-east1-a' },
   * )
   * const { result: disk } = await client.wait({ project_id }, operation, {
   *   onProgress: ({ steps }) => log(steps.map((step) => `${step.name} ${step.state}`)),
   * })
   * log(disk.size)
   * ```
   */
  wait<Result = unknown>(
    target: { project_id: string },
    operation: StartedOperation<Result> | string,
    options?: WaitOptions,
  ): Promise<Finished<Result>>

  /**
   * Streams new events of a project, or all events after a position. To end the stream, leave the loop or
   * abort the signal.
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

  /** Returns the daily usage of a project, or of all projects of an organization, as CSV text. */
  usageCsv(
    target: Target<'projectUsage'> | Target<'organizationUsage'>,
    options?: CallOptions,
  ): Promise<string>
}
