import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { offerImages } from '../../../src/setup/apply-config.ts'
import { ClusterWithAgents } from '../../support/incus/agent-stand-in.ts'
import { incusConfig } from '../../support/incus/config.ts'
import { IncusStandIn } from '../../support/incus/stand-in.ts'

const location = 'gpu-a'
const untrusting = 'gpu-b'
const imposter = 'gpu-c'
const expired = 'gpu-d'
const tls = (name: string) => join(import.meta.dirname, '../../support/fixtures/tls', name)
let dir: string
let incus: ClusterWithAgents
let stranger: IncusStandIn
const servers: IncusStandIn[] = []
let service: TestService

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'swi-'))
  incus = await new ClusterWithAgents(['m1']).open(join(dir, 'socket'))
  stranger = await new IncusStandIn().open(join(dir, 'stranger'))
  stranger.recorded.set('/1.0', { auth: 'untrusted', config: {} })
  stranger.recorded.set('/1.0/projects/slipway', {})
  const serverWith = async (name: string) => {
    const [cert, key] = [readFileSync(tls(`${name}.crt`), 'utf8'), readFileSync(tls(`${name}.key`), 'utf8')]
    const server = await new IncusStandIn({ cert, key, ca: cert }).open()
    servers.push(server)
    return server.url
  }
  const urls: Record<string, string> = {
    [imposter]: await serverWith('second'),
    [expired]: await serverWith('expired'),
  }
  service = await startService((config) => {
    const base = { description: '', engine: 'incus', storage: 'local', publicIpv4: '' } as const
    const locationAt = (name: string, socket: string) => ({
      ...{ ...base, name, incus: incusConfig({ socket: join(dir, socket) }) },
    })
    const both = [locationAt(location, 'socket'), locationAt(untrusting, 'stranger')]
    const secured = (name: string, serverCert: string) => ({
      ...{ ...base, name },
      incus: incusConfig({
        urls: [urls[name]],
        client_cert_file: tls('second.crt'),
        client_key_file: tls('second.key'),
        server_cert_file: tls(serverCert),
      }),
    })
    const failing = [secured(imposter, 'first.crt'), secured(expired, 'expired.crt')]
    config.locations = [...config.locations.slice(0, 1), ...both, ...failing]
  })
  const source = { fingerprint: '5e'.repeat(32) }
  await offerImages(service.database, location, [
    { name: 'guest:latest', description: '', tags: ['slipway-guest'], source },
  ])
})
afterAll(async () => {
  await service?.close()
  await incus?.close()
  await stranger?.close()
  for (const server of servers) await server.close()
  await rm(dir, { recursive: true })
})

test('a VM that has all GPUs of its host starts again right after its stop', async () => {
  const { newVm, act, succeeded, removeVm } = resourcesOf(service)
  const wanted = { type: 'a100-80gb.8x', location, image: 'guest:latest', public_ip: 'none' }
  const id = await newVm(wanted)
  for (let round = 0; round < 3; round++) {
    await succeeded(await act(id, { action: 'STOP' }))
    await succeeded(await act(id, { action: 'START' }))
  }
  expect(incus.instances.get(`vm-${id}`)?.status).toBe('Running')
  incus.recorded.set(`DELETE /1.0/instances/vm-${id}`, () => {
    incus.instances.delete(`vm-${id}`)
    incus.recorded.delete(`/1.0/instances/vm-${id}`)
    return {}
  })
  await succeeded(await removeVm(id))
})

test('an idle policy is refused, because no engine reads the GPU load of guests in this location', async () => {
  const { newVm } = resourcesOf(service)
  const idle_policy = { min_gpu_utilization: 5, window_seconds: 600, action: 'stop' as const }
  const wanted = { type: 'a100-80gb.1x', location, image: 'guest:latest', public_ip: 'none' }
  const refused = { status: 400, body: { message: expect.stringContaining('do not report their GPU load') } }
  expect(await service.call('vmCreate', { body: vmBody({ ...wanted, idle_policy }) })).toMatchObject(refused)
  // The GPUs of the VM before are free after an inspection.
  await service.server.reconciler.once()
  const params = { vm_id: await newVm(wanted) }
  expect(await service.call('vmUpdate', { params, body: { idle_policy } })).toMatchObject(refused)
  expect((await service.call('vmUpdate', { params, body: { idle_policy: null } })).status).toBe(200)
})

test('operators get alerts with advice if an instance has the id of another VM, or Incus does not trust the client', async () => {
  const operator = { token: service.credentials.operator_key }
  const messages = async (kind: string) => {
    await service.server.reconciler.reports()
    const { items } = await service.ok('adminAlertList', operator)
    return items.filter((alert) => alert.kind === kind).map(({ name, message }) => `${name}: ${message}`)
  }
  const trustCommand = 'does not trust the client certificate: run incus config trust add-certificate'
  const unread = await eventually(async () =>
    (await messages('location_unread')).find((message) => message.startsWith(untrusting)),
  )
  expect(unread).toMatch(new RegExp(`^${untrusting}: .*${trustCommand}`))
  const { items } = await service.ok('adminLocationList', operator)
  expect(items.find(({ name }) => name === untrusting)?.engine_problem).toContain(trustCommand)

  const id = randomUUID()
  incus.put({
    ...{ name: 'copy', status: 'Stopped', location: 'm1', last_used_at: '', profiles: [], devices: {} },
    config: { 'user.slipway.id': id },
  })
  incus.tell({ type: 'lifecycle', metadata: { source: '/1.0/instances/copy' } })
  const problem = await eventually(async () => (await messages('host_problem'))[0])
  expect(problem).toMatch(new RegExp(`^m1: .*instance copy has the id of VM ${id}.*incus rename copy`))
  incus.instances.delete('copy')
  incus.tell({ type: 'lifecycle', metadata: { source: '/1.0/instances/copy' } })
  await eventually(async () => (await messages('host_problem')).length === 0)
})

test('operators see that the certificate of a server is not the expected one, or has expired', async () => {
  const problemOf = async (location: string) => {
    const { items } = await service.ok('adminLocationList', { token: service.credentials.operator_key })
    return items.find(({ name }) => name === location)?.engine_problem
  }
  expect(await eventually(() => problemOf(imposter))).toContain('is not the one in server_cert_file')
  expect(await eventually(() => problemOf(expired))).toContain('the certificate of the server has expired')
})
