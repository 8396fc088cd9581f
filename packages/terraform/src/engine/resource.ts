import { type RouteId, routes } from '@slipway/contract'
import { type ContractSchema, inputAttribute, membersOf, outputAttribute } from '../schema/from-contract.ts'
import type { Attribute } from '../values/types.ts'
import type { ResourceRow } from './row.ts'

type Verb = 'create' | 'get' | 'list' | 'update' | 'delete'

/** Fields that one update request can change together, and fields that it must contain. */
interface UpdateForm {
  members: string[]
  required: string[]
}

/** A kind of resource: its row, and everything that is derived from the contract. */
export interface Resource {
  row: ResourceRow
  routes: Partial<Record<Verb, RouteId>>
  attributes: Attribute[]
  /** Schemas of the attributes that a configuration can set. */
  inputs: Record<string, ContractSchema>
  /** Fields of the request body that creates the resource. */
  bodyMembers: string[]
  /** Fields of a response. */
  recordMembers: string[]
  updateForms: UpdateForm[]
  /** The path parameter that is the id. */
  idParam: string
  isInProject: boolean
}

const timeouts = {
  type: {
    nesting: 'single' as const,
    attributes: ['create', 'update', 'delete'].map(
      (name): Attribute => ({
        name,
        type: 'string',
        description: 'A duration such as `90s`, `20m` or `1h30m`.',
        use: 'optional',
        isComputed: false,
      }),
    ),
  },
  description:
    'How long an apply waits for operations on this resource, and for operations on other resources that block it. The default is 20 minutes. After that, the operation continues in the background.',
}

/**
 * Descriptions of attributes that mean the same in every resource and have no description in the contract.
 */
const commonNotes: Record<string, string> = {
  description: 'Free text.',
}

const projectSchema: ContractSchema = {
  type: 'string',
  description: 'The project of the resource. The default is the project of the provider.',
}

const routesOf = (row: ResourceRow): Partial<Record<Verb, RouteId>> => {
  if (typeof row.routes !== 'string') return row.routes
  const verbs: Verb[] = ['create', 'get', 'list', 'update', 'delete']
  const named = verbs.map((verb) => [verb, `${row.routes}${verb[0]!.toUpperCase()}${verb.slice(1)}`] as const)
  return Object.fromEntries(named.filter(([, id]) => id in routes))
}

/** Returns whether the contract contains the routes of a row. */
export const isInContract = (row: ResourceRow): boolean => routesOf(row).create !== undefined

export const schemaOf = (id: RouteId, part: 'body' | 'response' | 'query'): ContractSchema =>
  ((routes[id] as unknown as Record<string, ContractSchema | undefined>)[part] ?? {}) as ContractSchema

export const hasOperation = (id: RouteId): boolean => 'operation' in membersOf(schemaOf(id, 'response'))

/** Returns the response schema of one resource, from its own route or from the items of its list. */
export function recordSchema(ids: Partial<Record<Verb, RouteId>>): ContractSchema {
  if (ids.get) return schemaOf(ids.get, 'response')
  const list = schemaOf(ids.list!, 'response')
  return list.items ?? membersOf(list).items!.items!
}

export function defineResource(row: ResourceRow): Resource {
  const ids = routesOf(row)
  const create = routes[ids.create!]
  const body = schemaOf(ids.create!, 'body')
  const bodyMembers = Object.keys(membersOf(body))
  const shown = recordSchema(ids)
  const record = { ...createdMembers(ids.create!), ...membersOf(shown) }
  const updateForms = ids.update ? formsOf(schemaOf(ids.update, 'body')) : []
  const path = routes[ids.delete ?? ids.get!].path
  const isInProject = create.path.includes('{project_id}')
  const resource: Resource = {
    row,
    routes: ids,
    attributes: [],
    inputs: inputSchemas(row, ids, bodyMembers, updateForms),
    bodyMembers,
    recordMembers: Object.keys(record),
    updateForms,
    idParam: /\{(\w+)\}$/.exec(path)?.[1] ?? 'project_id',
    isInProject,
  }
  resource.attributes = attributesOf(resource, record, body.required ?? [], shown.required ?? [])
  return resource
}

/** The response to a creation can contain more than later reads, such as a secret. */
const createdMembers = (create: RouteId) =>
  hasOperation(create) ? {} : membersOf(schemaOf(create, 'response'))

/**
 * Returns the forms of the contract in reverse order: labels first and sizes last. A group gets its new
 * template before it grows, so that new members are created from that template.
 */
function formsOf(schema: ContractSchema): UpdateForm[] {
  return (schema.anyOf ?? [schema])
    .map((form) => ({ members: Object.keys(membersOf(form)), required: form.required ?? [] }))
    .filter(({ members }) => !members.includes('action'))
    .toReversed()
}

function inputSchemas(
  row: ResourceRow,
  ids: Resource['routes'],
  bodyMembers: string[],
  updateForms: UpdateForm[],
): Record<string, ContractSchema> {
  const bodySchemas = membersOf(schemaOf(ids.create!, 'body'))
  const updateSchemas = ids.update ? membersOf(schemaOf(ids.update, 'body')) : {}
  const names = new Set([...bodyMembers, ...updateForms.flatMap(({ members }) => members)])
  const schemas = [...names].map((name): [string, ContractSchema] => {
    const minimum = updateSchemas[name]?.minimum
    return [
      name,
      { ...(bodySchemas[name] ?? updateSchemas[name]), ...(minimum !== undefined && { minimum }) },
    ]
  })
  return Object.fromEntries(schemas.filter(([name, schema]) => !row.omitted?.[name] && !isIgnored(schema)))
}

/** Fields without a type are ignored by the service. They are accepted so that a record can be sent back. */
const isIgnored = ({ type, enum: values, anyOf }: ContractSchema) => !type && !values && !anyOf

function attributesOf(
  { row, inputs, isInProject }: Resource,
  record: Record<string, ContractSchema>,
  required: string[],
  alwaysShown: string[],
): Attribute[] {
  const hasValue = new Set([...alwaysShown, ...(row.kept ?? []), ...(row.derived ?? [])])
  const inputAttributes = Object.entries(inputs).map(([name, schema]) => {
    const use = required.includes(name) ? 'required' : 'optional'
    const isComputed = use === 'optional' && hasValue.has(name)
    return inputAttribute(name, schema, { use, isComputed })
  })
  const outputs = Object.entries(record)
    .filter(([name]) => !(name in inputs) && !row.omitted?.[name] && name !== 'project_id')
    .map(([name, schema]) => outputAttribute(name, schema))
  const local = Object.entries({ ...row.local, timeouts }).map(
    ([name, facts]): Attribute => ({
      name,
      isComputed: false,
      ...facts,
      use: 'isComputed' in facts && facts.isComputed ? 'output' : 'optional',
    }),
  )
  const project = inputAttribute('project_id', projectSchema, { use: 'optional', isComputed: true })
  const all = [...inputAttributes, ...outputs, ...(isInProject ? [project] : []), ...local]
  if (!all.some(({ name }) => name === 'id'))
    all.push(outputAttribute('id', { type: 'string', description: 'The id of the resource.' }))
  return all.map((attribute) => ({
    ...attribute,
    description:
      [attribute.description, row.notes?.[attribute.name]].filter(Boolean).join(' ') ||
      (commonNotes[attribute.name] ?? ''),
    isSensitive: row.sensitive?.includes(attribute.name) ?? false,
  }))
}
