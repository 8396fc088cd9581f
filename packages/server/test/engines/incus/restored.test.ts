import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { guestNetworkKey, guestNetworkOf } from '../../../src/engines/incus/agent/guest-network.ts'
import { offerImages } from '../../../src/setup/apply-config.ts'
import { ClusterWithAgents } from '../../support/incus/agent-stand-in.ts'
import { incusConfig } from '../../support/incus/config.ts'

const location = 'gpu-a'
const fingerprint = '5e'.repeat(32)
const generationKey = 'user.slipway.generation'
let dir: string
let incus: ClusterWithAgents
let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'swi-'))
  const socket = join(dir, 'socket')
  incus = await new ClusterWithAgents(['m1', 'm2']).open(socket)
  incus.recorded.set(`/1.0/images/${fingerprint}`, { type: 'container' })
  service = await startService((config) => {
    config.operations.restored = true
    const place = {
      name: location,
      description: '',
      engine: 'incus',
      storage: 'local',
      publicIpv4: '',
    } as const
    config.locations = [...config.locations.slice(0, 1), { ...place, incus: incusConfig({ socket }) }]
  })
  resources = resourcesOf(service)
  const image = { name: 'guest:latest', description: '', tags: [], source: { fingerprint } }
  await offerImages(service.database, location, [image])
  await service.server.reconciler.reports()
})
afterAll(async () => {
  await service?.close()
  await incus?.close()
  await rm(dir, { recursive: true })
})

const succeeded = async ({ operation }: { operation: { operation_id: string } }) =>
  expect((await service.advanceUntilEnded(operation.operation_id)).state).toBe('SUCCEEDED')

test('a restored database continues with VMs on Incus that changed after the backup, and removes no instance', async () => {
  const wanted = { type: 'a100-80gb.1x', location, image: 'guest:latest', public_ip: 'none' }
  const id = await resources.newVm(wanted)
  const instance = () => incus.instances.get(`vm-${id}`)!
  const guest = () => guestNetworkOf(instance().config)!
  const { rules, generation } = guest().firewall

  const later = { ...guest(), firewall: { generation: generation + 7, rules: [] } }
  const newer = String(Number(instance().config[generationKey]) + 7)
  const changes = { [generationKey]: newer, [guestNetworkKey]: JSON.stringify(later) }
  incus.put({ ...instance(), config: { ...instance().config, ...changes } })
  const unknown = randomUUID()
  const marks = { 'user.slipway.id': unknown, 'user.slipway.goal': 'on', [generationKey]: '3' }
  incus.put({ ...instance(), name: `vm-${unknown}`, config: marks, devices: {} })

  await eventually(async () => {
    await service.server.reconciler.reports()
    await service.server.reconciler.firewalls()
    return guest().firewall.generation > generation + 7
  })
  expect(guest().firewall.rules).toEqual(rules)
  await succeeded(await resources.act(id, { action: 'STOP' }))
  await succeeded(await resources.act(id, { action: 'START' }))
  expect(instance()).toMatchObject({ status: 'Running' })
  expect(incus.instances.get(`vm-${unknown}`)).toMatchObject({ status: 'Running' })
  expect(incus.written.filter((line) => line.startsWith('DELETE'))).toEqual([])
})
