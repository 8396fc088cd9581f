import type { Event, RouteId, RouteParams } from '@slipway/contract'
import type { ClientCore } from './client-core.ts'
import type { EventStreamOptions } from './events.ts'
import { type Method, routeMethods, type StartedOperation, type Target } from './methods.ts'
import type { ListId, ListItem } from './pages.ts'
import type { CallOptions, Transport } from './transport.ts'
import type { Finished, WaitOptions } from './wait.ts'

/** Routes with a project id in the path. */
type ProjectRouteId = { [Id in RouteId]: 'project_id' extends keyof RouteParams<Id> ? Id : never }[RouteId]
type ProjectListId = ProjectRouteId & ListId
type ListFilter<Id extends ProjectListId> = Omit<Target<Id, 'project_id'>, 'page_token'>

interface ProjectCore {
  readonly project_id: string
  each<Id extends ProjectListId>(
    id: Id,
    filter?: ListFilter<Id>,
    options?: CallOptions,
  ): AsyncGenerator<ListItem<Id>>
  collect<Id extends ProjectListId>(
    id: Id,
    filter?: ListFilter<Id>,
    options?: CallOptions,
  ): Promise<ListItem<Id>[]>
  wait<Result = unknown>(
    operation: StartedOperation<Result> | string,
    options?: WaitOptions,
  ): Promise<Finished<Result>>
  events(options?: EventStreamOptions): AsyncGenerator<Event>
  usageCsv(filter?: Target<'projectUsage', 'project_id'>, options?: CallOptions): Promise<string>
}

/** A client for one project. */
export type ProjectClient = ProjectCore & { [Id in ProjectRouteId]: Method<Id, 'project_id'> }

export function bindProject(core: ClientCore, transport: Transport, project_id: string): ProjectClient {
  const bound: ProjectCore = {
    project_id,
    each: (id, filter, options) => core.each(id, { project_id, ...filter } as never, options),
    collect: (id, filter, options) => core.collect(id, { project_id, ...filter } as never, options),
    wait: (operation, options) => core.wait({ project_id }, operation, options),
    events: (options) => core.events({ project_id }, options),
    usageCsv: (filter, options) => core.usageCsv({ project_id, ...filter }, options),
  }
  return Object.assign(bound, routeMethods(transport, { project_id })) as unknown as ProjectClient
}
