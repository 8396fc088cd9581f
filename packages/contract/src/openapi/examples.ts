import type { TSchema } from 'typebox'
import { type RouteId, routeOf } from '../routes.ts'
import { components } from '../schema.ts'
import { byComponent, byMember, createdAt, id, startedAt } from './example-data.ts'

/** What each change does to which kind of resource, for the operation in its answer. */
const operations: Partial<Record<RouteId, [name: string, type: string, resourceId: string]>> = {
  vmCreate: ['CREATE', 'vm', id('b01')],
  vmUpdate: ['STOP', 'vm', id('b01')],
  vmDelete: ['DELETE', 'vm', id('b01')],
  vmAttachDisks: ['ATTACH', 'vm', id('b01')],
  vmDetachDisks: ['DETACH', 'vm', id('b01')],
  diskCreate: ['CREATE', 'disk', id('b02')],
  diskUpdate: ['RESIZE', 'disk', id('b02')],
  diskDelete: ['DELETE', 'disk', id('b02')],
  firewallRuleCreate: ['CREATE', 'firewall_rule', id('c03')],
  firewallRuleUpdate: ['UPDATE', 'firewall_rule', id('c03')],
  firewallRuleDelete: ['DELETE', 'firewall_rule', id('c03')],
}

/** The rule's echo shows its direction and action in the long forms. */
const echoed = (request: Record<string, unknown>) => ({
  ...request,
  ...(request.direction ? { direction: `DIRECTION_${String(request.direction).toUpperCase()}` } : {}),
  ...(request.action === 'allow' || request.action === 'deny'
    ? { action: `ACTION_${request.action.toUpperCase()}` }
    : {}),
})

/** A read of an operation shows it ended, with the resource as its result. */
const creations: Partial<Record<RouteId, RouteId>> = {
  operationGet: 'vmCreate',
  vmOperationGet: 'vmCreate',
  diskOperationGet: 'diskCreate',
  firewallRuleOperationGet: 'firewallRuleCreate',
  operationList: 'vmCreate',
  vmOperationList: 'vmCreate',
  diskOperationList: 'diskCreate',
  firewallRuleOperationList: 'firewallRuleCreate',
}
const results: Record<string, unknown> = {
  vm: byComponent.Vm,
  disk: byComponent.Disk,
  firewall_rule: byComponent.FirewallRule,
}

export function answerExample(routeId: RouteId, answer: TSchema): unknown {
  if (operations[routeId]) return { operation: operationExample(routeId) }
  const creation = creations[routeId]
  if (!creation) return exampleOf(answer)
  const started = operationExample(creation)
  const ended = {
    ...started,
    state: 'SUCCEEDED',
    result: results[started.metadata.type],
    completed_at: startedAt,
  }
  return routeId.endsWith('List') ? { items: [ended], next_page_token: '' } : ended
}

function operationExample(routeId: RouteId) {
  const [operation_name, type, resourceId] = operations[routeId] as [string, string, string]
  const { body } = routeOf(routeId)
  const request = (body ? exampleOf(body) : {}) as Record<string, unknown>
  return {
    operation_id: id('d01'),
    state: 'IN_PROGRESS',
    metadata: { operation_name, id: resourceId, type, request: echoed(request) },
    result: null as unknown,
    started_at: createdAt,
    completed_at: '',
  }
}

interface AnySchema {
  title?: string
  type?: string
  enum?: unknown[]
  const?: unknown
  default?: unknown
  minimum?: number
  examples?: unknown[]
  properties?: Record<string, AnySchema>
  required?: string[]
  items?: AnySchema
  anyOf?: AnySchema[]
  format?: string
}

export function exampleOf(schema: TSchema): unknown {
  return compose(schema as AnySchema, undefined)
}

export const exampleOfMember = (name: string, schema: TSchema) => compose(schema as AnySchema, name)

/**
 * The example written for the component, else the schema's own, else one composed of its required members; a member
 * without its own takes the one that is written for its name.
 */
function compose(schema: AnySchema, member: string | undefined): unknown {
  const { title } = schema
  if (title && components.has(title) && title in byComponent) return byComponent[title]
  if (schema.format === 'uuid' && member !== undefined && member in byMember) return byMember[member]
  if (schema.examples) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.properties) {
    const required = new Set(schema.required)
    return Object.fromEntries(
      Object.entries(schema.properties)
        .filter(([name]) => required.has(name))
        .map(([name, property]) => [name, compose(property, name)]),
    )
  }
  if (member !== undefined && member in byMember) return byMember[member]
  if (schema.anyOf?.[0]) return compose(schema.anyOf[0], member)
  if (schema.type === 'array') return schema.items ? [compose(schema.items, undefined)] : []
  if (schema.type === 'object') return {}
  if (schema.type === 'boolean') return false
  if (schema.type === 'integer' || schema.type === 'number') return schema.default ?? schema.minimum ?? 0
  return schema.type === 'string' ? '' : null
}
