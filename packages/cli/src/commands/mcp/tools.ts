import { routeIds, routeOf } from '@slipway/contract'
import type { RouteId } from '@slipway/sdk'

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
  /** It says where each member of the input goes. */
  place: Map<string, 'params' | 'query' | 'body'>
  /** A body that is not an object of members is passed as one member called `body`. */
  isBodyWhole: boolean
}

interface JsonSchema {
  type?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  description?: string
}

// These are taken from the context when they are missing.
const defaulted = new Set(['project_id', 'organization_id'])

/** Makes one tool per route. Agents get no sessions, and secrets only if they may write. */
export function routeTools(options: { allowsWrites: boolean; includesAdmin: boolean }): RouteTool[] {
  return routeIds
    .filter((id) => {
      const route = routeOf(id)
      const isReading = (route.method === 'GET' && !route.noStore) || route.changesNothing === true
      if (id.startsWith('auth')) return false
      if (route.access === 'operator' && !options.includesAdmin) return false
      return isReading || options.allowsWrites
    })
    .map(toTool)
}

function toTool(routeId: RouteId): RouteTool {
  const route = routeOf(routeId)
  const isReading = route.method === 'GET' || route.changesNothing === true
  const place: RouteTool['place'] = new Map()
  const properties: Record<string, unknown> = {}
  const required: string[] = []
  for (const [, name = ''] of route.path.matchAll(/\{(\w+)\}/g)) {
    place.set(name, 'params')
    properties[name] = { type: 'string', description: paramText(name) }
    if (!defaulted.has(name)) required.push(name)
  }
  const add = (schema: JsonSchema | undefined, where: 'query' | 'body') => {
    for (const [name, member] of Object.entries(schema?.properties ?? {})) {
      place.set(name, where)
      properties[name] = plain(member)
    }
    required.push(...(schema?.required ?? []))
  }
  add(route.query as JsonSchema | undefined, 'query')
  const body = route.body as JsonSchema | undefined
  const isBodyWhole = body !== undefined && !body.properties
  if (isBodyWhole) {
    place.set('body', 'body')
    properties.body = plain(body)
    required.push('body')
  } else add(body, 'body')

  return {
    routeId,
    place,
    isBodyWhole,
    isOperator: route.access === 'operator',
    tool: {
      name: routeId.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      title: route.summary,
      description: [route.summary, route.description].filter(Boolean).join('. '),
      inputSchema: { type: 'object', properties, required, additionalProperties: false },
      annotations: {
        readOnlyHint: isReading,
        destructiveHint: route.method === 'DELETE',
        // Each call carries its own idempotency key; only reads and deletions are the same when called again.
        idempotentHint: isReading || route.method === 'DELETE' || route.method === 'PUT',
        openWorldHint: false,
      },
    },
  }
}

function paramText(name: string): string {
  const noun = name.replace(/_id$/, '').replaceAll('_', ' ')
  return defaulted.has(name)
    ? `Id of the ${noun}; that of the current context if left out.`
    : `Name or id of the ${noun}.`
}

/** Schemas carry markers of the library they are made with; JSON drops what is not JSON. */
const plain = (schema: JsonSchema): unknown => JSON.parse(JSON.stringify(schema))
