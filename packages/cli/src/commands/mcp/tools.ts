import { routeIds, routeOf } from '@slipway/contract'
import type { RouteId } from '@slipway/sdk'
import type { ResourceNoun } from '../../core/command.ts'
import { isInToolset } from './toolsets.ts'

/** A tool as the Model Context Protocol describes it. */
interface Tool {
  name: string
  title: string
  description: string
  inputSchema: {
    type: 'object'
    properties: Record<string, unknown>
    required: string[]
    additionalProperties: false
  }
  outputSchema: object
  annotations: {
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: false
  }
}

export interface RouteTool {
  tool: Tool
  routeId: RouteId
  isOperator: boolean
  /** Maps each input field to the part of the request that it belongs to. */
  partOf: Map<string, 'params' | 'query' | 'body'>
  /** True if the body is not an object with named fields; it is then passed as one field called `body`. */
  isBodyWhole: boolean
}

interface JsonSchema {
  type?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  description?: string
}

/** If these parameters are missing, the values of the current context are used. */
const paramsFromContext = new Set(['project_id', 'organization_id'])

/** Path parameters that accept a name instead of an id. */
const nounOfParam: Record<string, ResourceNoun> = {
  vm_id: 'vm',
  instance_template_id: 'template',
  instance_group_id: 'group',
  disk_id: 'disk',
  snapshot_id: 'snapshot',
  custom_image_id: 'custom-image',
  network_id: 'network',
  subnet_id: 'subnet',
  address_id: 'address',
  rule_id: 'firewall',
  key_id: 'key',
  ssh_key_id: 'ssh-key',
  webhook_id: 'webhook',
  capacity_request_id: 'queue',
  user_id: 'member',
  host_id: 'host',
  image_id: 'image',
}

/** In operator tools, these parameters name other kinds of resources. Operator keys are found only by id. */
const nounOfOperatorParam: Record<string, ResourceNoun | undefined> = { user_id: 'user', key_id: undefined }

/** Returns the kind of resource that a path parameter names; undefined if the parameter must be an id. */
export const nounOf = (param: string, isOperator: boolean): ResourceNoun | undefined =>
  isOperator && param in nounOfOperatorParam ? nounOfOperatorParam[param] : nounOfParam[param]

export interface ToolOptions {
  allowsWrites: boolean
  includesAdmin: boolean
  /** All toolsets if undefined. */
  toolsets: string[] | undefined
}

/** `operation_list` and `operation_get` already cover the operations of all kinds of resources. */
const isRedundant = (id: RouteId) =>
  /^(vm|disk|firewallRule|instanceGroup|customImage|snapshot)Operation(List|Get)$/.test(id)

/** Creates one tool per route. Agents cannot manage sessions, and get secrets only if they may write. */
export function routeTools(options: ToolOptions): RouteTool[] {
  return routeIds
    .filter((id) => {
      const route = routeOf(id)
      const isReading = (route.method === 'GET' && !route.noStore) || route.changesNothing === true
      if (
        id.startsWith('auth') ||
        isRedundant(id) ||
        route.isText ||
        !isInToolset(route.tag, options.toolsets)
      )
        return false
      if (route.access === 'operator' && !options.includesAdmin) return false
      return isReading || options.allowsWrites
    })
    .map(toTool)
}

function toTool(routeId: RouteId): RouteTool {
  const route = routeOf(routeId)
  const isReading = route.method === 'GET' || route.changesNothing === true
  const partOf: RouteTool['partOf'] = new Map()
  const properties: Record<string, unknown> = {}
  const required: string[] = []
  for (const [, name = ''] of route.path.matchAll(/\{(\w+)\}/g)) {
    partOf.set(name, 'params')
    properties[name] = { type: 'string', description: paramText(name, route.access === 'operator') }
    if (!paramsFromContext.has(name)) required.push(name)
  }
  const add = (schema: JsonSchema | undefined, where: 'query' | 'body') => {
    for (const [name, member] of Object.entries(schema?.properties ?? {})) {
      partOf.set(name, where)
      properties[name] = withoutMarkers(member)
    }
    required.push(...(schema?.required ?? []))
  }
  add(route.query as JsonSchema | undefined, 'query')
  const body = route.body as JsonSchema | undefined
  const isBodyWhole = body !== undefined && !body.properties
  if (isBodyWhole) {
    partOf.set('body', 'body')
    properties.body = withoutMarkers(body)
    required.push('body')
  } else add(body, 'body')

  return {
    routeId,
    partOf,
    isBodyWhole,
    isOperator: route.access === 'operator',
    tool: {
      name: routeId.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      title: route.summary,
      description: [route.summary, route.description].filter(Boolean).join('. '),
      inputSchema: { type: 'object', properties, required, additionalProperties: false },
      outputSchema: outputSchema(route.response),
      annotations: {
        readOnlyHint: isReading,
        destructiveHint: route.method === 'DELETE' || route.isDestructive === true,
        // Each call has its own idempotency key, so only reads, deletions and PUTs have no additional effect
        // when repeated.
        idempotentHint: isReading || route.method === 'DELETE' || route.method === 'PUT',
        openWorldHint: false,
      },
    },
  }
}

function paramText(name: string, isOperator: boolean): string {
  const noun = name.replace(/_id$/, '').replaceAll('_', ' ')
  if (paramsFromContext.has(name))
    return `Id of the ${noun}. The default is the ${noun} of the current context.`
  if (!nounOf(name, isOperator)) return `Id of the ${noun}.`
  const nameOf: Record<string, string> = { user_id: 'E-mail address', webhook_id: 'URL' }
  return `${nameOf[name] ?? 'Name'} or id of the ${noun}.`
}

/** The protocol requires an object as the result, so an array is wrapped in `items`. */
export function outputSchema(response: object): object {
  const schema = structureOf(response) as { type?: string }
  return schema.type === 'array'
    ? { type: 'object', properties: { items: schema }, required: ['items'] }
    : schema
}

/** Returns the structure of a response, without the descriptions and formats that only requests need. */
function structureOf(schema: object): unknown {
  const omitted = new Set(['title', 'description', 'examples', 'pattern', 'format', 'default'])
  return JSON.parse(JSON.stringify(schema), (key, value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    // A field can have the same name as a keyword, so `properties` itself is not filtered.
    if (key === 'properties') return value
    return Object.fromEntries(Object.entries(value).filter(([name]) => !omitted.has(name)))
  })
}

/** Removes the markers that the schema library adds. */
const withoutMarkers = (schema: JsonSchema): unknown => JSON.parse(JSON.stringify(schema))
