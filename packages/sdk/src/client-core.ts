import type { Event, RouteId, RouteResponse } from '@slipway/contract'
import type { CallInput } from './call.ts'
import type { EventStreamOptions } from './events.ts'
import type { StartedOperation, Target } from './methods.ts'
import type { ListId, ListItem } from './pages.ts'
import type { CallOptions } from './transport.ts'
import type { Finished, WaitOptions } from './wait.ts'

type ListTarget<Id extends ListId> = Omit<Target<Id>, 'page_token'>

export interface ClientCore {
  /** Calls any route by its id. The methods named after the routes do the same and read better. */
  call<Id extends RouteId>(id: Id, input: CallInput<Id>): Promise<RouteResponse<Id>>

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
   * Waits until an operation has ended and gives it back with its result, which has the type of what was started;
   * throws an `ApiError` with the operation's own code if it failed, and with `timed_out` if `timeoutMs` passed.
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
