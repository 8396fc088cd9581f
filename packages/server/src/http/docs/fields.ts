/** Tables of fields for the schemas of the OpenAPI document. */

import { escapeHtml } from '../escape-html.ts'

export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
}
export type Schemas = Record<string, Schema>

/** Escapes text of the document. Text in backticks becomes code. */
export const inline = (text = '') => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')

const nameOf = (ref: string) => ref.slice(ref.lastIndexOf('/') + 1)
export const schemaId = (name: string) => `record-${name}`

/** Returns the item schema of a list record, which the page shows as "list of …". */
export function listItem(schema: Schema | undefined): Schema | undefined {
  const { items, ...others } = schema?.properties ?? {}
  return Object.keys(others).every((name) => name === 'next_page_token') ? items?.items : undefined
}

export function typeLabel(schema: Schema, schemas: Schemas): string {
  if (schema.$ref) {
    const name = nameOf(schema.$ref)
    const item = listItem(schemas[name])
    if (item) return `list of ${typeLabel(item, schemas)}`
    return `<a href="#${schemaId(name)}">${name}</a>`
  }
  if (schema.const !== undefined) return `<code>${escapeHtml(JSON.stringify(schema.const))}</code>`
  if (schema.enum) return schema.enum.map((value) => `<code>${escapeHtml(value)}</code>`).join(' ')
  if (schema.anyOf) return schema.anyOf.map((choice) => typeLabel(choice, schemas)).join(' or ')
  if (schema.type === 'array') return `array of ${schema.items ? typeLabel(schema.items, schemas) : 'values'}`
  if (schema.format) return escapeHtml(schema.format)
  return escapeHtml(schema.type ?? 'any')
}

function range(min: number | undefined, max: number | undefined, unit: string): string {
  const figure = (value: number) => value.toLocaleString('en')
  if (min !== undefined && max !== undefined) return `${figure(min)} to ${figure(max)}${unit}`
  if (min !== undefined) return `at least ${figure(min)}${unit}`
  return max === undefined ? '' : `at most ${figure(max)}${unit}`
}

function remarks(schema: Schema): string {
  const limits = [
    range(schema.minimum, schema.maximum, ''),
    range(schema.minLength === 1 ? undefined : schema.minLength, schema.maxLength, ' characters'),
    range(schema.minItems, schema.maxItems, ' items'),
    schema.default === undefined ? '' : `default ${schema.default}`,
  ].filter(Boolean)
  const text = limits.join('; ').replace(/^[a-z]/, (letter) => letter.toUpperCase())
  const limit = text ? `<span class="limit">${escapeHtml(text)}.</span>` : ''
  return [inline(schema.description), limit].filter(Boolean).join(' ')
}

export interface Field {
  name: string
  schema: Schema
  isRequired: boolean
  /** The number of unnamed objects that contain the field. */
  depth?: number
}

/** Returns the fields, each followed by the fields of the unnamed object in it. */
function flatten(schema: Schema, depth = 0): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => [
    { name, schema: member, isRequired: schema.required?.includes(name) ?? false, depth },
    ...flatten(member.items ?? member, depth + 1),
  ])
}

export function fieldTable(fields: Field[], schemas: Schemas, marksRequired: boolean): string {
  if (fields.length === 0) return '<p class="quiet">No fields.</p>'
  const rows = fields.map(({ name, schema, isRequired, depth = 0 }) => {
    const mark = marksRequired && isRequired ? ' <span class="required">required</span>' : ''
    const label = escapeHtml(name).replaceAll('_', '_<wbr>')
    return `<tr class="depth-${depth}"><th scope="row"><code>${label}</code>${mark}</th><td>${typeLabel(schema, schemas)}</td><td>${remarks(schema)}</td></tr>`
  })
  return `<table class="fields"><thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

/** Returns the alternatives of a request body. The page shows them inline instead of linking to them. */
export function alternativesOf(schema: Schema, schemas: Schemas): Schema[] {
  const resolved = schema.$ref ? (schemas[nameOf(schema.$ref)] as Schema) : schema
  return resolved.anyOf ? resolved.anyOf.flatMap((choice) => alternativesOf(choice, schemas)) : [resolved]
}

export const bodyFields = (schema: Schema, schemas: Schemas) =>
  alternativesOf(schema, schemas)
    .map((shape) => fieldTable(flatten(shape), schemas, true))
    .join('<p class="or">or</p>')

/**
 * Returns the names of all records that the schemas refer to. Records that are lists are left out; the records
 * of their items are included.
 */
export function reachableRecords(roots: Schema[], schemas: Schemas): string[] {
  const seen = new Set<string>()
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { $ref } = node as Schema
    if ($ref) {
      const name = nameOf($ref)
      if (seen.has(name)) return
      seen.add(name)
      visit(schemas[name])
    } else for (const value of Object.values(node)) visit(value)
  }
  for (const root of roots) visit(root)
  return [...seen].filter((name) => !listItem(schemas[name])).sort()
}

export function recordSection(name: string, schemas: Schemas): string {
  const schema = schemas[name] as Schema
  return `<section class="record" id="${schemaId(name)}"><h3><a class="anchor" href="#${schemaId(name)}">${name}</a></h3>${
    schema.description ? `<p>${inline(schema.description)}</p>` : ''
  }${fieldTable(flatten(schema), schemas, false)}</section>`
}
