import type { RouteId } from '@slipway/contract'
import { callRoute, type LooseInput, requestOf } from './call.ts'
import type { ClientCore } from './client-core.ts'
import { eventStream } from './events.ts'
import { type Method, routeMethods, splitTarget } from './methods.ts'
import { eachItem, type ListItem } from './pages.ts'
import { bindProject, type ProjectClient } from './project-client.ts'
import { type ClientOptions, createTransport } from './transport.ts'
import { waitForOperation } from './wait.ts'

interface ProjectBinding {
  /**
   * Returns a client for one project, whose calls omit `project_id`.
   *
   * @example
   * ```ts
   * const project = client.project(project_id)
   * const { operation } = await project.diskCreate({ name: 'scratch', size: '10GiB', location: 'us-east1-a' })
   * const { result: disk } = await project.wait(operation)
   * await project.wait((await project.diskDelete({ disk_id: disk.id })).operation)
   * log(await project.collect('diskList'))
   * ```
   */
  project(project_id: string): ProjectClient
}

export type Client = ClientCore & ProjectBinding & { [Id in RouteId]: Method<Id> }

/**
 * Creates a client of the service. A client has no connection and no state, so you can create any number of
 * them.
 *
 * Requests are retried if the connection breaks or the service is busy. Writes have an idempotency key, so a
 * retry does not repeat the change.
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
 * const { result: vm } = await client.wait({ project_id }, operation)
 * log(`ssh ${vm.ssh_destination}`)
 * await client.vmDelete({ project_id, vm_id: vm.id })
 * ```
 */
export function createClient(options: ClientOptions): Client {
  const transport = createTransport(options)
  const core: ClientCore & ProjectBinding = {
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
    project: (project_id) => bindProject(core, transport, project_id),
    usageCsv: async (target, callOptions) => {
      const id = 'project_id' in target ? 'projectUsage' : 'organizationUsage'
      const request = requestOf(id, { ...splitTarget(id, target), ...callOptions })
      return transport.send({ ...request, headers: { accept: 'text/csv' } }, (response) => response.text())
    },
  }
  return Object.assign(core, routeMethods(transport)) as unknown as Client
}
