import type { Attribute, ValueType } from '../values/types.ts'

/** The parts of a JSON schema of the contract from which attributes are derived. */
export interface ContractSchema {
  type?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  anyOf?: ContractSchema[]
  properties?: Record<string, ContractSchema>
  required?: string[]
  items?: ContractSchema
  additionalProperties?: boolean | ContractSchema
  pattern?: string
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
  propertyNames?: ContractSchema
}

/**
 * Lists whose order matters, because the service numbers their items. All other lists in requests are sets.
 */
const orderedLists = ['new_disks']

/** Creates the attribute for a request field. Nested fields are required or optional as in the contract. */
export function inputAttribute(
  name: string,
  schema: ContractSchema,
  facts: Pick<Attribute, 'use' | 'isComputed'>,
): Attribute {
  return { name, description: describe(schema, 'input'), type: typeFrom(name, schema, 'input'), ...facts }
}

/** Creates the attribute for a response field. */
export function outputAttribute(name: string, schema: ContractSchema): Attribute {
  const type = typeFrom(name, schema, 'output')
  return { name, description: describe(schema, 'output'), type, use: 'output', isComputed: true }
}

function typeFrom(name: string, schema: ContractSchema, side: 'input' | 'output'): Attribute['type'] {
  const plain = withoutNull(schema)
  const attributesOf = (object: ContractSchema) =>
    Object.entries(membersOf(object)).map(([member, inner]) =>
      side === 'output'
        ? outputAttribute(member, inner)
        : inputAttribute(member, inner, {
            use: object.required?.includes(member) && !object.anyOf ? 'required' : 'optional',
            isComputed: false,
          }),
    )
  if (isObject(plain)) return { nesting: 'single', attributes: attributesOf(plain) }
  if (plain.type === 'array' && plain.items && isObject(plain.items)) {
    const isSet = side === 'input' && !orderedLists.includes(name)
    return { nesting: isSet ? 'set' : 'list', attributes: attributesOf(plain.items) }
  }
  if (plain.type === 'array') {
    const item = scalar(plain.items ?? {}, name)
    return side === 'input' && !orderedLists.includes(name) ? { set: item } : { list: item }
  }
  if (plain.type === 'object') return { map: scalar(plain.additionalProperties as ContractSchema, name) }
  return scalar(plain, name)
}

function scalar(schema: ContractSchema, name: string): ValueType {
  const { type, enum: values = [], const: constant } = withoutNull(schema)
  const example = constant ?? values[0]
  if (type === 'string' || typeof example === 'string') return 'string'
  if (type === 'integer' || type === 'number' || typeof example === 'number') return 'number'
  if (type === 'boolean' || typeof example === 'boolean') return 'bool'
  throw new Error(`No Terraform type for ${name}: ${JSON.stringify(schema)}`)
}

/** Returns the fields of an object, or of all alternatives of a union of objects. */
export function membersOf(schema: ContractSchema): Record<string, ContractSchema> {
  return schema.properties ?? Object.assign({}, ...(schema.anyOf ?? []).map(membersOf))
}

const isObject = (schema: ContractSchema): boolean =>
  schema.properties !== undefined || (schema.anyOf?.every(isObject) ?? false)

/** Returns the schema without its null alternative, because Terraform's values can always be null. */
export function withoutNull(schema: ContractSchema): ContractSchema {
  const choices = schema.anyOf?.filter(({ type }) => type !== 'null') ?? []
  if (choices.length !== 1) return schema
  return { ...choices[0], ...(schema.description && { description: schema.description }) }
}

function describe(schema: ContractSchema, side: 'input' | 'output'): string {
  const {
    description: given = '',
    enum: values,
    const: constant,
    format,
    minimum,
    maximum,
  } = withoutNull(schema)
  // The contract's description of ids is only about letter case, so it is replaced.
  const description = format === 'uuid' && given.startsWith('Requests may use') ? 'A UUID.' : given
  const [several, one] =
    side === 'input' ? ['Supported values:', 'Supported value:'] : ['Possible values:', 'Always']
  const choices = values ? `${several} ${listOf(values)}.` : ''
  const only = typeof constant === 'string' ? `${one} \`${constant}\`.` : ''
  const range = minimum !== undefined && maximum !== undefined ? `From ${minimum} to ${maximum}.` : ''
  return [description, choices, only, range].filter(Boolean).join(' ')
}

/** Lists values in Markdown, in which the empty string cannot be shown between backticks. */
function listOf(values: unknown[]): string {
  const shown = values.filter((value) => value !== '').map((value) => `\`${value}\``)
  return [...shown, ...(shown.length < values.length ? ['or the empty string'] : [])].join(', ')
}
