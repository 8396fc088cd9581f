import { buildOpenApi } from '@slipway/contract/openapi'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'

/** Every response in any test is checked against the OpenAPI document. */
const document = buildOpenApi({ version: '0.0.0' }) as {
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: Record<string, unknown>; $ref?: string }> }>
  >
}
const ajv = (addFormatsModule as unknown as (a: Ajv2020) => Ajv2020)(
  // Formats of our own are not checked here, because only requests have them, and the server checks those.
  new Ajv2020({ strict: false, allErrors: true, logger: false }),
)
// The document allows unknown fields, but in tests all fields of a response must be in the document.
ajv.addSchema({ $id: 'openapi', ...(rejectUnknownFields(document) as object) })

const paths = Object.keys(document.paths)
  .map((path) => ({
    path,
    expression: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  }))
  // /vms/operations before /vms/{vm_id}
  .sort((a, b) => a.path.split('{').length - b.path.split('{').length)

export function validateResponse(
  method: string,
  url: string,
  status: number,
  contentType: string,
  body: unknown,
): void {
  if (method === 'HEAD') return
  const path = url.split('?', 1)[0]!.replace(/(?<=.)\/$/, '')
  const known = paths.find(
    ({ path: template, expression }) =>
      expression.test(path) && document.paths[template]?.[method.toLowerCase()],
  )
  if (!known) {
    if (typeof body === 'object') check('#/components/schemas/Error', body, `${method} ${path} ${status}`)
    return
  }
  const responses = document.paths[known.path]![method.toLowerCase()]!.responses
  if (!responses[status])
    throw new Error(`${method} ${known.path} returned ${status}, which the document does not list`)
  if (contentType.startsWith('text/') || contentType.startsWith('application/openmetrics-text')) return
  if (status !== 200) {
    check('#/components/schemas/Error', body, `${method} ${path} ${status}`)
    return
  }
  const pointer = [
    'paths',
    known.path,
    method.toLowerCase(),
    'responses',
    '200',
    'content',
    'application/json',
    'schema',
  ]
  check(
    `#/${pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`,
    body,
    `${method} ${path}`,
  )
}

/** Makes every object schema with known fields reject unknown fields. */
function rejectUnknownFields(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(rejectUnknownFields)
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, rejectUnknownFields(value)]),
  )
  const isRecord = copy.type === 'object' && copy.properties && !('additionalProperties' in copy)
  return isRecord ? { ...copy, additionalProperties: false } : copy
}

function check(pointer: string, body: unknown, what: string): void {
  const validate = ajv.getSchema(`openapi${pointer}`)
  if (!validate) throw new Error(`the document has no schema at ${pointer}`)
  if (!validate(body))
    throw new Error(
      `${what} does not match the document: ${JSON.stringify(validate.errors?.slice(0, 3))} in ${JSON.stringify(body).slice(0, 500)}`,
    )
}
