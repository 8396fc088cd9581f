import { connect } from 'node:net'
import { addKey, ownerToken } from '@slipway/testing/people.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  service = await startService((config) => {
    config.server.role = 'api'
  })
  resources = resourcesOf(service)
})
afterAll(() => service.close())

async function newKey() {
  const { project_id } = service.credentials
  const token = await ownerToken(service)
  const key = await addKey(service, token, project_id, 'write')
  const revoke = () => service.ok('accessKeyDelete', { token, params: { project_id, key_id: key.id } })
  return { ...key, revoke }
}

test('a key that is revoked while its request body is being sent changes nothing', async () => {
  const { secret, revoke } = await newKey()
  const name = 'disk-of-a-revoked-key'
  const body = JSON.stringify({ name, size: '1GiB', location: 'us-east1-a' })
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  let received = ''
  const receive = (text: string) =>
    new Promise<void>((resolve) => {
      const look = () => received.includes(text) && resolve()
      socket.on('data', look)
      look()
    })
  socket.on('data', (chunk) => {
    received += chunk
  })
  socket.write(
    [
      `POST /v0.1/projects/${service.credentials.project_id}/disks HTTP/1.1`,
      `Host: ${hostname}`,
      `Authorization: Bearer ${secret}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Expect: 100-continue',
      '',
      '',
    ].join('\r\n'),
  )
  // The server has received the headers, and waits for the body.
  await receive('HTTP/1.1 100')
  await service.request('GET', '/v0.1')
  await revoke()
  socket.write(body)
  await receive('request_id')
  socket.destroy()
  expect(received).toContain('HTTP/1.1 401')
  expect(await service.sql('SELECT FROM disks WHERE name = $1', [name])).toEqual([])
})

test('a key that is revoked during a long poll gets no data', async () => {
  const { secret, revoke } = await newKey()
  const { operation } = await resources.createDisk()
  const response = service.call('operationGet', {
    token: secret,
    params: { operation_id: operation.operation_id },
    query: { wait: 60 },
  })
  // The long poll starts before the key is revoked, because a later request would be refused immediately.
  await service.request('GET', '/v0.1')
  await revoke()
  await service.another((config) => {
    config.server.role = 'worker'
  })
  const { status, body } = await response
  expect(status).toBe(401)
  expect(body).toMatchObject({ code: 'unauthenticated' })
})
