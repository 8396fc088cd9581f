// Prints the contract's schemas as plain TypeScript types, so that users of the SDK need neither the contract
// nor the schema library.
import { importBundled } from '../bundled.mjs'

/** Returns the text of a declaration file: every named record, the routes by id, and the error codes. */
export async function contractTypes() {
  const contract = await importBundled('packages/contract/src/index.ts')
  const { components, routeIds, routeOf, devRoutes, errorCodes, operationErrorCodes } = contract
  const type = typePrinter(components, [contract.eventTypes, contract.vmTypeNames])

  const records = [...components.values()].map(
    (schema) => `${docOf(schema, '')}export interface ${schema.title} ${type.body(schema)}`,
  )
  // Exported schemas that are not records: unions of records, string formats, aliases.
  const others = Object.entries(contract)
    .filter(([name, value]) => isSchema(value) && !components.has(name))
    .map(([name, schema]) => `${docOf(schema, '')}export type ${name} = ${type.of(schema)}`)

  const printRoute = ([id, { method, path, summary, query, body, response, opensTransactions, isText }]) => {
    const params = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => `${name}: string`).join('; ')
    const parts = [
      `method: '${method}'`,
      `path: '${path}'`,
      `params: {${params && ` ${params} `}}`,
      query && `query: ${type.of(query, '    ')}`,
      body && `body: ${type.of(body, '    ')}`,
      `response: ${type.of(response, '    ')}`,
      opensTransactions && 'opensTransactions: true',
      isText && 'isText: true',
    ]
    const doc = summary ? `  /** ${summary} */\n` : ''
    return `${doc}  ${id}: {\n    ${parts.filter(Boolean).join('\n    ')}\n  }`
  }
  const routes = routeIds.map((id) => printRoute([id, routeOf(id)]))

  return `${[
    ...records,
    ...others,
    `export type ErrorCode = ${union(errorCodes)}`,
    `export type FailureCode = ErrorCode | ${union(operationErrorCodes)}`,
    `/** The parameters, query, body and response of each route. */\nexport interface Routes {\n${routes.join('\n')}\n}`,
    'export type RouteId = keyof Routes',
    "export type RouteParams<Id extends RouteId> = Routes[Id]['params']",
    'export type RouteQuery<Id extends RouteId> = Routes[Id] extends { query: infer Query } ? Query : undefined',
    'export type RouteBody<Id extends RouteId> = Routes[Id] extends { body: infer Body } ? Body : undefined',
    "export type RouteResponse<Id extends RouteId> = Routes[Id]['response']",
    `export type FaultEffect = ${union(contract.faultEffects)}`,
    `/** The parameters, query, body and response of each lever. */\nexport interface DevRoutes {\n${Object.entries(devRoutes).map(printRoute).join('\n')}\n}`,
    'export type DevRouteId = keyof DevRoutes',
    'export type DevQuery<Id extends DevRouteId> = DevRoutes[Id] extends { query: infer Query } ? Query : undefined',
    'export type DevBody<Id extends DevRouteId> = DevRoutes[Id] extends { body: infer Body } ? Body : undefined',
    "export type DevResponse<Id extends DevRouteId> = DevRoutes[Id]['response']",
  ].join('\n\n')}\n`
}

const isSchema = (value) =>
  typeof value === 'object' && (value?.type ?? value?.anyOf) !== undefined && '~kind' in value

const union = (values) => values.map((value) => JSON.stringify(value).replaceAll('"', "'")).join(' | ')

function docOf({ description }, indent) {
  return description ? `${indent}/** ${description.replaceAll('*/', '*\\/')} */\n` : ''
}

/** Prints schemas as types; `openSets` are lists of values that may grow, which are printed as `string`. */
function typePrinter(components, openSets) {
  const isOpen = (values) =>
    openSets.some((set) => set.length === values.length && set.every((each) => values.includes(each)))

  function of(schema, indent = '') {
    return components.get(schema.title) === schema ? schema.title : body(schema, indent)
  }

  function body(schema, indent = '') {
    if (schema.const !== undefined) return union([schema.const])
    if (schema.enum) return isOpen(schema.enum) ? 'string' : union(schema.enum)
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return choices.map((choice) => of(choice, indent)).join(' | ')
    switch (schema.type) {
      case 'array':
        if (schema.prefixItems) return `[${schema.prefixItems.map((item) => of(item, indent)).join(', ')}]`
        return arrayOf(of(schema.items, indent))
      case 'object':
        return schema.properties ? objectOf(schema, indent) : mapOf(schema, indent)
      case 'integer':
      case 'number':
        return 'number'
      case 'string':
      case 'boolean':
      case 'null':
        return schema.type
      case undefined:
        return 'unknown'
      default:
        throw new Error(`no type for ${JSON.stringify(schema)}`)
    }
  }

  function objectOf({ properties, required = [] }, indent) {
    const inner = `${indent}  `
    const members = Object.entries(properties).map(([name, member]) => {
      const mark = required.includes(name) ? '' : '?'
      return `${docOf(member, inner)}${inner}${name}${mark}: ${of(member, inner)}\n`
    })
    return members.length > 0 ? `{\n${members.join('')}${indent}}` : '{}'
  }

  function mapOf({ additionalProperties, patternProperties = {} }, indent) {
    const [value = additionalProperties ?? {}] = Object.values(patternProperties)
    return `Record<string, ${of(value, indent)}>`
  }

  const arrayOf = (item) => (/^[\w.]+$/.test(item) ? `${item}[]` : `Array<${item}>`)

  return { of, body }
}
