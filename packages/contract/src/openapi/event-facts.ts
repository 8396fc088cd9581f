/** Who can see an event. Webhooks and the project's stream get only events with the scope `project`. */
export type EventScope = 'project' | 'organization' | 'service'

export interface EventFacts {
  scope: EventScope
  /** When the event is sent, in a sentence or two. */
  when: string
  resource_type: string
  resource_id: string
  /** An example of the data, including fields that are not always present. */
  data: Record<string, unknown>
}

/** Returns a function that describes the events of a resource. `common` is part of the data of each event. */
export const eventsOf =
  (resource_type: string, resource_id: string, scope: EventScope, common: Record<string, unknown> = {}) =>
  (when: string, more: Record<string, unknown> = {}): EventFacts => ({
    scope,
    when,
    resource_type,
    resource_id,
    data: { ...common, ...more },
  })

export const id = (tail: string) => `0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7${tail}`
export const labels = { team: 'ml' }
export const operation_id = id('d01')
export const operationData = (operation_name: string) => ({ operation_id, operation_name })
export const repeated = (type: string, tail: string) => eventsOf(type, id(tail), 'project', { operation_id })
export const deletionRepeated = (type: string, tail: string, resource: string) =>
  repeated(type, tail)(`Deletion of ${resource} was requested again while it was already being deleted.`)
