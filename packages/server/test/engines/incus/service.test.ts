import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { offerImages } from '../../../src/setup/apply-config.ts'
import { ClusterWithAgents } from '../../support/incus/agent-stand-in.ts'
import { incusConfig } from '../../support/incus/config.ts'

const location = 'gpu-a'
let dir: string
let incus: ClusterWithAgents
let service: TestService

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'swi-'))
  incus = await new ClusterWithAgents(['m1']).open(join(dir, 'socket'))
  service = await startService((config) => {
    const base = {
      name: location,
      description: '',
      engine: 'incus',
      storage: 'local',
      publicIpv4: '',
    } as const
    const incusLocation = { ...base, incus: incusConfig({ socket: join(dir, 'socket') }) }
    config.locations = [...config.locations.slice(0, 1), incusLocation]
  })
  const source = { fingerprint: '5e'.repeat(32) }
  await offerImages(service.database, location, [{ name: 'guest:latest', description: '', tags: [], source }])
})
afterAll(async () => {
  await service?.close()
  await incus?.close()
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
