import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { incusConfig } from '../../support/incus/config.ts'
import { IncusStandIn, type ReceivedRequest } from '../../support/incus/stand-in.ts'

const location = 'gpu-a'
const mark = 'user.slipway.scheduler-before'
let dir: string
let incus: IncusStandIn
let service: TestService
/** The settings that the cluster stores for each member. */
const members = new Map<string, { status: string; config: Record<string, string> }>()

/** Called when a member was read, before the reader gets the response. */
let afterRead: (config: Record<string, string>) => void = () => {}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'swi-'))
  incus = await new IncusStandIn().open(join(dir, 'socket'))
  incus.recorded.set('/1.0/projects/slipway', {})
  for (const name of ['m1', 'm2', 'm3']) {
    members.set(name, { status: 'Online', config: {} })
    incus.recorded.set(`/1.0/cluster/members/${name}`, ({ method, body }: ReceivedRequest) => {
      const member = members.get(name)!
      if (method === 'PATCH')
        member.config = kept({ ...member.config, ...(body as { config: Record<string, string> }).config })
      const response = structuredClone(memberOf(name))
      if (method === 'GET') afterRead(member.config)
      return response
    })
  }
  incus.recorded.set('/1.0/cluster/members', () => [...members.keys()].map(memberOf))
  incus.recorded.set('/1.0/resources', {
    ...{ cpu: { total: 96 }, memory: { total: 2 ** 40 }, gpu: { cards: [] }, pci: { devices: [] } },
  })
  for (const path of [
    '/1.0/instances',
    '/1.0/network-acls',
    '/1.0/profiles',
    '/1.0/storage-pools/default/volumes/custom',
  ])
    incus.recorded.set(path, [])
  const socket = join(dir, 'socket')
  service = await startService((config) => {
    // The test starts each inspection.
    config.server.role = 'api'
    config.locations = [
      ...config.locations.slice(0, 1),
      {
        ...{ name: location, description: '', engine: 'incus', storage: 'local', publicIpv4: '' },
        incus: incusConfig({ socket, instance_type: 'virtual-machine' }),
      },
    ]
  })
})
afterAll(async () => {
  await service?.close()
  await incus?.close()
  await rm(dir, { recursive: true })
})

/** Returns the settings that Incus keeps, which are those with a value. */
const kept = (config: Record<string, string>) =>
  Object.fromEntries(Object.entries(config).filter(([, value]) => value !== ''))

const memberOf = (server_name: string) => ({
  ...{ server_name, message: '', roles: ['database'], ...members.get(server_name)! },
})

let ids: Map<string, string>
beforeEach(async () => {
  for (const member of members.values()) Object.assign(member, { status: 'Online', config: {} })
  await service.server.reconciler.reports()
  const { items } = await service.ok('adminHostList', { token: operator(), query: { location } })
  ids = new Map(items.map(({ name, id }) => [name, id]))
})

const operator = () => service.credentials.operator_key
const of = (name: string) => ({ token: operator(), params: { host_id: ids.get(name)! } })
const setSchedulable = (name: string, schedulable: boolean) =>
  service.ok('adminHostUpdate', { ...of(name), body: { schedulable } })
const inspect = () => service.server.reconciler.reports()
const changes = () => incus.asked.filter(({ method }) => method === 'PATCH').length

test('a cordoned or drained host is removed from the Incus scheduler, and returns when it is uncordoned', async () => {
  members.get('m2')!.config = { 'scheduler.instance': 'group', 'user.theirs': 'kept' }
  await setSchedulable('m1', false)
  await service.ok('adminHostDrain', of('m2'))
  await inspect()
  expect(memberOf('m1').config).toEqual({ 'scheduler.instance': 'manual', [mark]: 'all' })
  expect(memberOf('m2')).toMatchObject({
    roles: ['database'],
    config: { 'scheduler.instance': 'manual', [mark]: 'group', 'user.theirs': 'kept' },
  })
  expect(memberOf('m3').config).toEqual({})

  const before = changes()
  await inspect()
  expect(changes()).toBe(before)

  await setSchedulable('m1', true)
  await setSchedulable('m2', true)
  await inspect()
  expect(memberOf('m1').config).toEqual({})
  expect(memberOf('m2').config).toEqual({ 'scheduler.instance': 'group', 'user.theirs': 'kept' })
})

test('a member that was evacuated, or closed by an administrator, is not changed', async () => {
  members.get('m1')!.status = 'Evacuated'
  members.get('m2')!.config = { 'scheduler.instance': 'manual' }
  const before = changes()
  for (const name of ['m1', 'm2']) await setSchedulable(name, false)
  await inspect()
  for (const name of ['m1', 'm2']) await setSchedulable(name, true)
  await inspect()
  expect(changes()).toBe(before)
  expect(memberOf('m2').config).toEqual({ 'scheduler.instance': 'manual' })

  await setSchedulable('m1', false)
  await inspect()
  expect(memberOf('m1').config).toEqual({})
  // When the member is back, it gets the setting that it missed.
  members.get('m1')!.status = 'Online'
  await inspect()
  expect(memberOf('m1').config).toEqual({ 'scheduler.instance': 'manual', [mark]: 'all' })
  await setSchedulable('m1', true)
})

test('cordoning or uncordoning a host does not overwrite what the agent of the member writes at the same time', async () => {
  let version = 0
  afterRead = (config) => Object.assign(config, { 'user.slipway.agent': `${++version}` })
  try {
    await setSchedulable('m1', false)
    await inspect()
    expect(memberOf('m1').config).toEqual({ ...closedConfig, 'user.slipway.agent': '1' })
    await setSchedulable('m1', true)
    await inspect()
    expect(memberOf('m1').config).toEqual({ 'user.slipway.agent': '2' })
  } finally {
    afterRead = () => {}
  }
})

const closedConfig = { 'scheduler.instance': 'manual', [mark]: 'all' }
