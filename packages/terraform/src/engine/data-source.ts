import { type RouteId, routes } from '@slipway/contract'
import { type ContractSchema, inputAttribute, membersOf, outputAttribute } from '../schema/from-contract.ts'
import { type Attribute, unknown, type Value, type Values } from '../values/types.ts'
import { ProblemError } from './diagnostics.ts'
import { listRecords, readRecord } from './records.ts'
import { type Resource, recordSchema, schemaOf } from './resource.ts'
import { projectOf, type Session } from './session.ts'

export interface DataSource {
  name: string
  description: string
  example: string
  attributes: Attribute[]
  read(session: Session, config: Values): Promise<Values>
}

const optional = { use: 'optional', isComputed: false } as const
const optionalOutput = { use: 'optional', isComputed: true } as const
const projectAttribute = inputAttribute(
  'project_id',
  { type: 'string', description: 'The default is the project of the provider.' },
  optionalOutput,
)

/** Defines a data source that returns all items of one list. Its arguments are the filters of the list's route. */
export function defineListSource(row: {
  name: string
  description: string
  example: string
  list: RouteId
}): DataSource {
  const { list, name, description, example } = row
  const filters = membersOf(schemaOf(list, 'query'))
  const item = membersOf(schemaOf(list, 'response')).items!
  return {
    name,
    description,
    example,
    attributes: [
      ...Object.entries(filters).map(([filter, schema]) => inputAttribute(filter, schema, optional)),
      projectAttribute,
      outputAttribute('items', { ...item, description: 'All items that match the arguments.' }),
    ],
    async read(session, config) {
      const project_id = projectOf(session, config.project_id)
      const query = Object.fromEntries(
        Object.keys(filters).map((filter) => [filter, config[filter] ?? undefined]),
      )
      const items = await listRecords(session, list, { project_id, ...query })
      return { ...config, project_id, items }
    },
  }
}

/** Defines a data source for one existing resource, which is found by its id, name or labels. */
export function defineRecordSource(resource: Resource): DataSource {
  const { row, isInProject } = resource
  const record = membersOf(recordSchema(resource.routes))
  const isSingle = resource.idParam === 'project_id' && isInProject
  const list = resource.routes.list
  const canSelect = list !== undefined && 'label_selector' in membersOf(schemaOf(list, 'query'))
  const keys = [...(isSingle ? [] : ['id']), ...('name' in record ? ['name'] : [])]
  const selectors = [...keys, ...(canSelect ? ['label_selector'] : [])]
  const selector: ContractSchema = {
    type: 'string',
    description: 'Selects by labels, for example `team=ml,stage!=test`. Exactly one resource must match.',
  }
  const attributes = [
    ...Object.entries(record)
      .filter(([name]) => !row.omitted?.[name] && name !== 'project_id')
      .map(([name, schema]) =>
        keys.includes(name) ? inputAttribute(name, schema, optionalOutput) : outputAttribute(name, schema),
      ),
    ...(canSelect ? [inputAttribute('label_selector', selector, optional)] : []),
    ...(isInProject ? [projectAttribute] : []),
  ]
  return {
    name: row.name,
    description: `Reads an existing ${row.noun}${isSingle ? '' : ` by ${either(selectors)}`}.`,
    example: exampleOf(row.name, isSingle, keys),
    attributes,
    async read(session, config) {
      const project = isInProject ? { project_id: projectOf(session, config.project_id) } : {}
      const found = isSingle
        ? await readRecord(session, resource, { ...project, id: project.project_id! })
        : await findOne(session, resource, selectors, config, project)
      return { ...config, ...found, ...project }
    },
  }
}

/** Joins words, such as `id, name or label_selector`. */
const either = (words: string[]) => [words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' or ')

function exampleOf(name: string, isSingle: boolean, keys: string[]): string {
  const key = keys.includes('name') ? '  name = "example"\n' : isSingle ? '' : '  id = "…"\n'
  return `data "slipway_${name}" "example" {\n${key}}`
}

async function findOne(
  session: Session,
  resource: Resource,
  selectors: string[],
  config: Values,
  project: Record<string, string>,
): Promise<Values> {
  const { row } = resource
  const given = selectors.filter((key) => isGiven(config[key] ?? null))
  if (given.length === 0)
    throw new ProblemError({
      summary: `No ${row.noun} selected`,
      detail: `Set ${selectors.length === 1 ? 'the argument' : 'one of the arguments'} ${either(selectors)}.`,
    })
  if (given.includes('id')) {
    const record = await readRecord(session, resource, { ...project, id: config.id! })
    if (record && (config.name ?? record.name) === record.name) return record
    throw notExactlyOne(row.noun, 0)
  }
  const list = resource.routes.list!
  const query = membersOf(schemaOf(list, 'query'))
  const items = await listRecords(session, list, {
    ...project,
    ...(isGiven(config.name ?? null) && 'names' in query && { names: config.name }),
    ...(isGiven(config.label_selector ?? null) && { label_selector: config.label_selector }),
    ...('latest' in query && { latest: true }),
  })
  const matching = items.filter(({ name }) => !isGiven(config.name ?? null) || name === config.name)
  if (matching.length !== 1) throw notExactlyOne(row.noun, matching.length)
  return matching[0]!
}

const isGiven = (value: Value) => value !== null && value !== unknown && value !== ''

const notExactlyOne = (noun: string, count: number) =>
  new ProblemError({
    summary: `${count === 0 ? 'No' : 'More than one'} ${noun} matches`,
    detail:
      count === 0
        ? `There is no ${noun} with this id, name or labels in the project, or the access key cannot see it.`
        : `${count} resources match. Use the id, the name, or labels that only one of them has.`,
  })

export const hasRoute = (id: string): id is RouteId => id in routes
