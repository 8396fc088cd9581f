import { routeIds, routeOf } from '@slipway/contract'
import { type ApiError, createClient } from '@slipway/sdk'
import { answer, scriptedServer } from '@slipway/testing/scripted-server.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requestOf, routeLine } from '../src/call.ts'

const project_id = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
const hostileIds = [
  ...[
    '..',
    '.',
    '',
    '%2e%2e',
    '%2E',
    '.%2e',
    '..%2f',
    'a/b',
    '../..',
    '..\\',
    '/',
    ' ..',
    '..?x',
    '..#x',
    '\t..',
  ],
  ...['operations', 'train-7', `${project_id}/..`, `${project_id}\n`],
]

let server: Awaited<ReturnType<typeof scriptedServer>>
beforeAll(async () => {
  server = await scriptedServer(answer(200, { operation: {}, items: [], next_page_token: '' }))
})
afterAll(() => server.close())

test('a value that is not an id is rejected before a request is sent', async () => {
  const client = createClient({ baseUrl: server.url, token: 'key' })
  const project = client.project('..')
  for (const id of hostileIds) {
    const calls: [string, () => Promise<unknown>][] = [
      ['ssh_key_id', () => client.sshKeyDelete({ project_id, ssh_key_id: id })],
      ['project_id', () => client.sshKeyDelete({ project_id: id, ssh_key_id: project_id })],
      ['vm_id', () => client.call('vmDelete', { params: { project_id, vm_id: id } })],
      [
        'provider',
        () => client.authOidcUnlink({ provider: id === 'operations' || id === 'train-7' ? '' : id }),
      ],
      ['project_id', () => client.collect('vmList', { project_id: id })],
      ['project_id', () => client.usageCsv({ project_id: id })],
      ['operation_id', () => client.wait({ project_id }, id)],
      ['project_id', () => client.events({ project_id: id }).next()],
      ['project_id', () => client.events({ project_id: id }, { after: 0 }).next()],
      ['project_id', () => project.vmList()],
    ]
    for (const [field, call] of calls) {
      const error: ApiError = await call().then(
        () => expect.fail(`${field} ${id} was sent`),
        (reason) => reason,
      )
      expect(error, `${field} ${id}`).toMatchObject({ code: 'invalid_argument', details: [{ field }] })
    }
  }
  expect(server.requests).toEqual([])
  const refused = await client.vmGet({ project_id, vm_id: '..' }).catch((error) => error)
  expect(refused.message).toBe('The request vmGet was not sent: vm_id must be a UUID, not "..".')
})

test('an id in upper case is sent unchanged', async () => {
  const client = createClient({ baseUrl: server.url, token: 'key' })
  await client.vmGet({ project_id, vm_id: project_id.toUpperCase() })
  expect(server.requests.at(-1)?.path).toBe(`/v0.1/projects/${project_id}/vms/${project_id.toUpperCase()}`)
})

const lines = routeIds.map((id) => ({ id, ...routeLine(id), parts: routeLine(id).path.split('/') }))

/**
 * The route that a server chooses for a request: literal parts of a path take precedence over parameters, as in every
 * router.
 */
function routeCalled(method: string, path: string) {
  const sent = new URL(`http://127.0.0.1${path}`).pathname.split('/')
  const fits = (part: string, i: number) => part === sent[i] || (part.startsWith('{') && sent[i] !== '')
  return lines
    .filter(({ parts, ...line }) => line.method === method && parts.length === sent.length)
    .filter(({ parts }) => parts.every(fits))
    .sort((one, other) => one.paramNames.length - other.paramNames.length)[0]?.id
}

test('no parameter value changes which route is called', () => {
  const dots = fc.stringMatching(/^([./\\?#;%]|%2[eEfF]|%5c|%00|[a-zA-Z]){0,6}$/)
  const value = fc.oneof(
    { weight: 3, arbitrary: fc.uuid() },
    fc.uuid().map((id) => id.toUpperCase()),
    fc.constantFrom(...hostileIds),
    fc.constantFrom(...new Set(routeIds.flatMap((id) => routeOf(id).path.split('/')))),
    dots,
    fc.string({ unit: 'binary' }),
  )
  let sent = 0
  fc.assert(
    fc.property(
      fc.constantFrom(...routeIds),
      fc.array(value, { minLength: 4, maxLength: 4 }),
      (id, values) => {
        const { method, paramNames } = routeLine(id)
        const params = Object.fromEntries(paramNames.map((name, i) => [name, values[i]!]))
        let path: string
        try {
          path = requestOf(id, { params }).path
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_argument' })
          return
        }
        sent += 1
        expect(routeCalled(method, path)).toBe(id)
      },
    ),
    { numRuns: 2000 },
  )
  expect(sent).toBeGreaterThan(200)
})
