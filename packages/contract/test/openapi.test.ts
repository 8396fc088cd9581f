import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect, test } from 'vitest'
import { buildOpenApi } from '../src/openapi/index.ts'
import { routeIds, routeOf } from '../src/routes.ts'

// biome-ignore lint/suspicious/noExplicitAny: the test walks the document as the plain JSON that readers get.
type Any = any

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
const document: Any = JSON.parse(JSON.stringify(buildOpenApi({ version })))

// Ajv does not know our own formats, so they are not checked here.
const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false })
addFormats.default(ajv)
ajv.addSchema({ $id: 'document', ...document })

/**
 * Returns the errors of a value against the schema at a pointer into the document, where its references can be
 * resolved.
 */
function errorsAt(pointer: string, value: unknown): string {
  const validate = ajv.getSchema(`document#${pointer}`)
  if (!validate) return `no schema at ${pointer}`
  return validate(value) ? '' : ajv.errorsText(validate.errors)
}

const escaped = (key: string) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))

function* nodes(value: Any, pointer = ''): Generator<{ value: Any; pointer: string }> {
  if (typeof value !== 'object' || value === null) return
  yield { value, pointer }
  for (const key of Object.keys(value)) yield* nodes(value[key], `${pointer}/${escaped(key)}`)
}

const isData = (pointer: string) => /\/(example|examples|default|enum)(\/|$)/.test(pointer)
const resolve = (ref: string): Any =>
  ref
    .slice(2)
    .split('/')
    .reduce((node: Any, key) => node?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], document)

const operations: Any[] = Object.values(document.paths).flatMap((path: Any) => Object.values(path))
const operationOf = (id: string): Any => operations.find((operation) => operation.operationId === id)
const refs = new Set<string>()
for (const { value } of nodes(document)) if (typeof value.$ref === 'string') refs.add(value.$ref)

test('the OpenAPI document has version 3.1, a license and the URL of the service', () => {
  expect(document.openapi).toMatch(/^3\.1\./)
  expect(document.info).toMatchObject({ version, license: { identifier: 'Apache-2.0' } })
  const elsewhere = buildOpenApi({ version, serverUrl: 'https://gpu.example.org' })
  expect(elsewhere.servers).toEqual([{ url: 'https://gpu.example.org' }])
})

test('the OpenAPI document has every route of the table with its path, method and id', () => {
  for (const id of routeIds) {
    const route = routeOf(id)
    expect(document.paths[route.path]?.[route.method.toLowerCase()]?.operationId).toBe(id)
  }
  const servicePaths = ['/healthz', '/readyz', '/metrics', '/openapi.json']
  for (const path of servicePaths) expect(document.paths[path].get.security).toEqual([])
  expect(operations).toHaveLength(routeIds.length + servicePaths.length)
})

test('the OpenAPI document declares every path parameter, and requires a credential unless the route is public', () => {
  for (const id of routeIds) {
    const route = routeOf(id)
    const { parameters, security } = operationOf(id)
    const named = parameters.map((entry: Any) => (entry.$ref ? resolve(entry.$ref) : entry))
    const inPath = named.filter((entry: Any) => entry.in === 'path').map((entry: Any) => `{${entry.name}}`)
    expect(inPath).toEqual(route.path.match(/\{\w+\}/g) ?? [])
    expect(security).toEqual(route.access === 'public' ? [] : undefined)
  }
})

test('the OpenAPI document has an Idempotency-Key for every write whose route opens no transactions itself', () => {
  for (const id of routeIds) {
    const route = routeOf(id)
    const offers = operationOf(id).parameters.some((entry: Any) => entry.$ref?.endsWith('/IdempotencyKey'))
    expect([id, offers]).toEqual([id, route.method !== 'GET' && !route.opensTransactions])
    expect([id, '422' in operationOf(id).responses]).toEqual([id, offers])
  }
})

test('the OpenAPI document lists every error that a route declares, with an example of each', () => {
  for (const id of routeIds) {
    const responses = Object.entries<Any>(operationOf(id).responses)
    const codes = responses.flatMap(([status, { $ref }]) => {
      if (!$ref) return []
      const { examples } = resolve($ref).content['application/json']
      for (const example of Object.values<Any>(examples)) {
        expect(errorsAt('/components/schemas/Error', example.value)).toBe('')
      }
      return Object.keys(examples).map((code) => `${status} ${code}`)
    })
    for (const code of routeOf(id).errors ?? []) {
      expect(codes.map((entry) => entry.split(' ')[1])).toContain(code)
    }
    expect(codes).toContain('429 rate_limited')
    expect(codes.includes('401 unauthenticated')).toBe(
      routeOf(id).access !== 'public' || (routeOf(id).errors ?? []).includes('unauthenticated'),
    )
  }
})

test('the OpenAPI document lists the payment error exactly for routes inside a project', () => {
  expect(operationOf('vmList').responses).toHaveProperty('402')
  expect(operationOf('projectGet').responses).not.toHaveProperty('402')
  expect(operationOf('organizationBilling').responses).not.toHaveProperty('402')
})

test('the OpenAPI document has no dangling reference and no unused component', () => {
  for (const ref of refs) expect([ref, resolve(ref) !== undefined]).toEqual([ref, true])
  for (const kind of ['schemas', 'responses', 'parameters', 'headers']) {
    for (const name of Object.keys(document.components[kind])) {
      expect(refs).toContain(`#/components/${kind}/${name}`)
    }
  }
})

test('the OpenAPI document gives every enumeration a type', () => {
  for (const { value, pointer } of nodes(document)) {
    if (Array.isArray(value.enum) && !isData(pointer))
      expect([pointer, typeof value.type]).toEqual([pointer, 'string'])
  }
})

test('the request and response examples of the OpenAPI document match their schemas', () => {
  let checked = 0
  for (const { value, pointer } of nodes(document)) {
    if (isData(pointer) || !value.schema) continue
    const samples = [value.example, ...Object.values<Any>(value.examples ?? {}).map((entry) => entry.value)]
    for (const sample of samples) {
      if (sample === undefined) continue
      checked += 1
      expect([pointer, errorsAt(`${pointer}/schema`, sample)]).toEqual([pointer, ''])
    }
  }
  expect(checked).toBeGreaterThan(routeIds.length)
})

test('the field examples of the OpenAPI document match their schemas', () => {
  for (const { value, pointer } of nodes(document)) {
    if (isData(pointer) || !Array.isArray(value.examples)) continue
    for (const sample of value.examples) expect([pointer, errorsAt(pointer, sample)]).toEqual([pointer, ''])
  }
})

test('the OpenAPI document has an example for every request body and every JSON response', () => {
  for (const id of routeIds) {
    const { requestBody, responses } = operationOf(id)
    if (requestBody) expect(requestBody.content['application/json'].example).toBeDefined()
    const json = responses[200].content['application/json']
    expect([id, routeOf(id).isText ? 'text' : json.example]).not.toEqual([id, undefined])
  }
})
