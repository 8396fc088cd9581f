import { isDeepStrictEqual } from 'node:util'
import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Engine, HostReport } from '../../src/engines/engine.ts'
import { Reconciler } from '../../src/reconcile/reconciler.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  service = await startService((config) => {
    config.locations.find(({ name }) => name === 'us-west1-a')!.storage = 'local'
  })
  resources = resourcesOf(service)
})
afterAll(() => service.close())
afterEach(async () => {
  await settle(service)
  await checkInvariants(service)
  await resources.clear()
  await settle(service)
  await checkInvariants(service)
})

const hostOf = async (vmId: string) => {
  const [row] = await service.sql<{ id: string; name: string }>(
    'SELECT h.id, h.name FROM vms v JOIN hosts h ON h.id = v.host_id WHERE v.id = $1',
    [vmId],
  )
  return row!
}
const reports = () => service.server.reconciler.reports()
const until = (vmId: string, state: string) =>
  eventually(async () => {
    await reports()
    return (await resources.stateOf(vmId)) === state
  })
const act = async (vmId: string, action: string) => {
  const { operation } = await resources.act(vmId, { action })
  return service.ended(operation.operation_id)
}
const isMetered = async (vmId: string) =>
  (await service.sql('SELECT FROM usage_intervals WHERE resource_id = $1 AND upper_inf(period)', [vmId]))
    .length > 0
const eventsOf = async (vmId: string) =>
  service.sql<{ type: string; data: { detail?: string } }>(
    'SELECT type, data FROM events_written WHERE resource_id = $1 ORDER BY seq',
    [vmId],
  )
const engineHas = async (vmId: string) =>
  (await service.simulator().inspectVm({ id: vmId, host: '' })) !== null

const failsForItsDisk = {
  state: 'FAILED',
  result: { code: 'engine_error', message: expect.stringMatching(/OS disk .* was lost/) },
}

test('a VM whose OS disk is lost is shown as crashed with the reason, costs nothing, and is never recreated silently', async () => {
  const id = await resources.newVm()
  await service.simulator().reinstallHost((await hostOf(id)).name)
  await until(id, 'STATE_CRASHED')
  const crashed = (await eventsOf(id)).find(({ type }) => type === 'vm.crashed')
  expect(crashed?.data.detail).toMatch(/no longer has its OS disk/)
  expect(await isMetered(id)).toBe(false)

  expect(await act(id, 'RESET')).toMatchObject(failsForItsDisk)
  expect(await resources.stateOf(id)).toBe('STATE_CRASHED')
  expect(await isMetered(id)).toBe(false)
  expect(await act(id, 'STOP')).toMatchObject({ state: 'SUCCEEDED' })
  expect(await act(id, 'START')).toMatchObject(failsForItsDisk)
  expect(await resources.stateOf(id)).toBe('STATE_SHUTOFF')
  expect(await engineHas(id)).toBe(false)
  await resources.succeeded(await resources.removeVm(id))
})

test('a VM whose OS disk is lost while it is shut off does not start, whether or not the loss was noticed before', async () => {
  const disk = await resources.newDisk()
  const [unnoticed, noticed] = [
    await resources.newVm(),
    await resources.newVm({ disks: [{ disk_id: disk }] }),
  ]
  for (const id of [unnoticed, noticed]) expect(await act(id, 'STOP')).toMatchObject({ state: 'SUCCEEDED' })
  await service.simulator().reinstallHost((await hostOf(unnoticed)).name)
  expect(await act(unnoticed, 'START')).toMatchObject(failsForItsDisk)
  expect(await resources.stateOf(unnoticed)).toBe('STATE_SHUTOFF')

  await service.simulator().reinstallHost((await hostOf(noticed)).name)
  await eventually(async () => {
    await reports()
    return (await eventsOf(noticed)).find(({ type }) => type === 'vm.os_disk_lost')
  })
  expect(await act(noticed, 'START')).toMatchObject(failsForItsDisk)
  expect(await engineHas(noticed)).toBe(false)
  // The data disk of the VM is not lost with its OS disk.
  await resources.succeeded(await resources.detach(noticed, disk))
  await resources.succeeded(await resources.removeDisk(disk))
})

test('a VM whose OS disk is found again is billed again, and starts with a reset', async () => {
  const id = await resources.newVm()
  await service.sql('UPDATE simulated_vms SET is_removed = true WHERE id = $1', [id])
  await until(id, 'STATE_CRASHED')
  expect(await isMetered(id)).toBe(false)
  await service.sql('UPDATE simulated_vms SET is_removed = false WHERE id = $1', [id])
  await eventually(async () => {
    await reports()
    return isMetered(id)
  })
  expect((await eventsOf(id)).map(({ type }) => type)).toContain('vm.os_disk_found')
  expect(await act(id, 'RESET')).toMatchObject({ state: 'SUCCEEDED' })
  expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
})

type Inventory = (healthy: Engine, signal: AbortSignal) => AsyncIterable<HostReport>

/** Changes the host reports of an engine. Everything else works as usual. */
function changeInventory(location: string, change: (report: HostReport) => HostReport): () => void {
  return replaceInventory(location, async function* (healthy, signal) {
    for await (const report of healthy.inventory(signal)) yield change(report)
  })
}

function replaceInventory(location: string, inventoryOf: Inventory): () => void {
  const engines = service.server.services.engines as Map<string, Engine>
  const healthy = engines.get(location)!
  const inventory = (signal: AbortSignal) => inventoryOf(healthy, signal)
  const changed = new Proxy(healthy, {
    get: (engine, name: keyof Engine) => (name === 'inventory' ? inventory : engine[name].bind(engine)),
  })
  engines.set(location, changed)
  return () => engines.set(location, healthy)
}

const openState = (hostId: string) =>
  service.sql<{ state: string; free_gpus: number }>('SELECT state, free_gpus FROM hosts WHERE id = $1', [
    hostId,
  ])
/** Repeats inspections, because one that began earlier may still report the previous state. */
const untilOpen = (hostId: string, expected: object) =>
  eventually(async () => {
    await reports()
    const [now] = await openState(hostId)
    return isDeepStrictEqual({ ...now, ...expected }, now)
  })

test('a host that its engine reports as offline gets no new VMs, and its VMs have a grace period', async () => {
  const id = await resources.newVm()
  const { id: hostId, name } = await hostOf(id)
  const isHost = (report: HostReport) => report.name === name
  const away = { isUnreachable: true, gpus: [], vms: [], disks: [] }
  const undo = changeInventory('us-east1-a', (report) => (isHost(report) ? { ...report, ...away } : report))
  try {
    await untilOpen(hostId, { state: 'down' })
    expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
    await service.clock.advance('31 seconds')
    await until(id, 'STATE_UNREACHABLE')
  } finally {
    undo()
  }
  await until(id, 'STATE_RUNNING')
  expect(await openState(hostId)).toMatchObject([{ state: 'up' }])
})

test('a late report counts for the time at which it was requested, and does not bring back a lost host', async () => {
  const id = await resources.newVm()
  const { id: hostId, name } = await hostOf(id)
  let ask = () => {}
  let release = () => {}
  const asked = new Promise<void>((resolve) => (ask = resolve))
  const released = new Promise<void>((resolve) => (release = resolve))
  const undo = replaceInventory('us-east1-a', async function* (healthy, signal) {
    const reported: HostReport[] = []
    for await (const report of healthy.inventory(signal)) reported.push(report)
    ask()
    await released
    yield* reported
  })
  const late = reports()
  await asked
  await service.simulator().setHostLost(name, true)
  await service.clock.advance('31 seconds')
  undo()
  await reports()
  expect(await openState(hostId)).toMatchObject([{ state: 'down' }])
  release()
  await late
  expect(await openState(hostId)).toMatchObject([{ state: 'down' }])
  await until(id, 'STATE_UNREACHABLE')
  await service.simulator().setHostLost(name, false)
  await until(id, 'STATE_RUNNING')
})

test('a report with a time in the future, from before the clock was set back, does not keep a silent host up', async () => {
  const id = await resources.newVm()
  const { id: hostId, name } = await hostOf(id)
  await service.sql(
    `UPDATE host_reports SET reported_at = slipway_now() + interval '1 year' WHERE host_id = $1`,
    [hostId],
  )
  await reports()
  await service.simulator().setHostLost(name, true)
  await service.clock.advance('31 seconds')
  await until(id, 'STATE_UNREACHABLE')
  await service.simulator().setHostLost(name, false)
  await until(id, 'STATE_RUNNING')
})

test('a host that its engine has closed takes no VMs, keeps its existing ones, and opens again', async () => {
  const id = await resources.newVm()
  const { id: hostId, name } = await hostOf(id)
  const [before] = await openState(hostId)
  expect(before!.free_gpus).toBeGreaterThan(0)
  const close = (report: HostReport) => (report.name === name ? { ...report, isClosed: true } : report)
  const undo = changeInventory('us-east1-a', close)
  try {
    await untilOpen(hostId, { state: 'up', free_gpus: 0 })
    expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
  } finally {
    undo()
  }
  await untilOpen(hostId, before!)
  expect((await eventsOf(hostId)).map(({ type }) => type)).not.toContain('gpu.missing')
})

/** Makes the inventory of an engine hang and ignore its abort signal. Everything else works as usual. */
function hangInventory(location: string): () => void {
  const engines = service.server.services.engines as Map<string, Engine>
  const healthy = engines.get(location)!
  const hung = Object.assign(Object.create(healthy) as Engine, {
    async *inventory() {
      await new Promise(() => {})
    },
  })
  engines.set(location, hung)
  service.server.services.stepMs = 300
  return () => {
    engines.set(location, healthy)
    delete service.server.services.stepMs
  }
}

test('the start of the service waits only for engines that were not read recently', async () => {
  const { services } = service.server
  const asked: string[] = []
  const recordInventories = ([location, engine]: [string, Engine]): [string, Engine] => {
    const get = (target: Engine, name: keyof Engine) => {
      if (name === 'inventory') asked.push(location)
      return (target[name] as () => unknown).bind(target)
    }
    return [location, new Proxy(engine, { get: get as never })]
  }
  const engines = new Map([...services.engines].map(recordInventories))
  const askedAtStart = async () => {
    asked.length = 0
    const another = new Reconciler({ ...services, engines })
    await another.start()
    const before = [...asked]
    await another.stop()
    return before
  }
  await reports()
  expect(await askedAtStart()).toEqual([])
  // The service's own reconciler may have read the engine again in between.
  await eventually(async () => {
    await service.sql(`UPDATE locations SET engine_answered_at = NULL WHERE name = 'us-west1-a'`)
    return isDeepStrictEqual(await askedAtStart(), ['us-west1-a'])
  })
})

test('an engine whose inventory hangs blocks neither marking its own hosts as lost nor other locations', async () => {
  const [east, west] = [await resources.newVm(), await resources.newVm({ location: 'us-west1-a' })]
  const undo = hangInventory('us-west1-a')
  try {
    await service.clock.advance('61 seconds')
    await service.simulator().crashVm(east)
    await until(east, 'STATE_CRASHED')
    await until(west, 'STATE_UNREACHABLE')
    // `/readyz` shows which engine does not answer; nothing else is affected.
    const answeringByLocation = async () => {
      const { status, body } = await service.request('GET', '/readyz')
      expect(status).toBe(200)
      const { engines } = body as { engines: { location: string; is_answering: boolean }[] }
      return Object.fromEntries(engines.map(({ location, is_answering }) => [location, is_answering]))
    }
    await eventually(async () => {
      const now = await answeringByLocation()
      return now['us-east1-a'] && !now['us-west1-a']
    })
  } finally {
    undo()
  }
  await until(west, 'STATE_RUNNING')
})

const operator = <Id extends 'adminHostForget' | 'adminHostGet'>(id: Id, host_id: string) =>
  service.call(id, { token: service.credentials.operator_key, params: { host_id } })
const lose = async (location: string, host: string) => {
  await service.simulator(location).setHostLost(host, true)
  await service.clock.advance('31 seconds')
  await reports()
}
/** Registers the host again, as an operator does when the machine is back. */
const registerAgain = async (location: string, name: string) => {
  await service.simulator(location).setHostLost(name, false)
  const [host] = await service.sql<{ model: string; count: number }>(
    'SELECT model, gpu_count AS count FROM simulated_hosts WHERE location = $1 AND name = $2',
    [location, name],
  )
  const token = service.credentials.operator_key
  await service.ok('adminHostCreate', { token, body: { name, location, gpus: host } })
}
const gpusUsed = async () => {
  const { items } = await service.ok('quotaList')
  return items.filter(({ name }) => name.endsWith('_gpus')).reduce((sum, { used }) => sum + used, 0)
}
const gpuStates = async (host_id: string) => {
  const { body } = await operator('adminHostGet', host_id)
  return [...new Set(body.gpus.map(({ state }) => state))]
}

test('a forgotten host releases everything, and does not count until it is registered again', async () => {
  const disk = await resources.newDisk()
  const deleted = await resources.newVm({ disks: [{ disk_id: disk }] })
  const host = await hostOf(deleted)
  const kept = await resources.newVm()
  const off = await resources.newVm()
  expect((await hostOf(kept)).id).toBe(host.id)
  expect((await hostOf(off)).id).toBe(host.id)
  expect(await act(off, 'STOP')).toMatchObject({ state: 'SUCCEEDED' })
  expect((await operator('adminHostForget', host.id)).body).toMatchObject({ code: 'conflict' })

  await lose('us-east1-a', host.name)
  await resources.succeeded(await resources.removeVm(deleted))
  expect(await service.ok('diskGet', { params: { disk_id: disk } })).toMatchObject({
    attached_to: [{ vm_id: deleted, vm_deleted: true }],
  })
  const refused = await service.call('diskDelete', { params: { disk_id: disk } })
  expect(refused.body).toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('declares the host lost'),
  })
  expect(await gpuStates(host.id)).toEqual(expect.arrayContaining(['claimed', 'quarantined']))

  const forgotten = await operator('adminHostForget', host.id)
  expect(forgotten.body).toMatchObject({ state: 'down', vms: [], forgotten_at: expect.stringMatching(/Z$/) })
  expect(await gpuStates(host.id)).toEqual(['gone'])
  expect(await gpusUsed()).toBe(0)
  await resources.succeeded(await resources.removeDisk(disk))
  expect(await resources.stateOf(kept)).toBe('STATE_CRASHED')
  expect(await isMetered(kept)).toBe(false)
  expect(await act(kept, 'RESET')).toMatchObject(failsForItsDisk)
  expect(await act(kept, 'STOP')).toMatchObject({ state: 'SUCCEEDED' })
  expect(await act(kept, 'START')).toMatchObject(failsForItsDisk)
  // With shared storage, the OS disk of a VM that was off is not on the host.
  expect(await act(off, 'START')).toMatchObject({ state: 'SUCCEEDED' })

  await service.simulator().setHostLost(host.name, false)
  await reports()
  expect((await operator('adminHostGet', host.id)).body).toMatchObject({ state: 'down' })
  expect((await operator('adminHostForget', host.id)).status).toBe(200)
  await resources.succeeded(await resources.removeVm(kept))
  await registerAgain('us-east1-a', host.name)
  await eventually(async () => {
    await reports()
    return String(await gpuStates(host.id)) === 'free'
  })
  expect((await operator('adminHostGet', host.id)).body).toMatchObject({ state: 'up', forgotten_at: '' })
})

test('a forgotten host with local storage loses its disks, and its operations in progress end', async () => {
  const location = 'us-west1-a'
  const disk = await resources.newDisk({ location })
  const [id, off] = [
    await resources.newVm({ location, disks: [{ disk_id: disk }] }),
    await resources.newVm({ location }),
  ]
  const host = await hostOf(id)
  expect((await hostOf(off)).id).toBe(host.id)
  expect(await act(off, 'STOP')).toMatchObject({ state: 'SUCCEEDED' })
  await service.simulator(location).setHostLost(host.name, true)
  const { operation } = await resources.act(id, { action: 'STOP' })
  await service.clock.advance('31 seconds')
  await reports()
  expect((await operator('adminHostForget', host.id)).status).toBe(200)
  expect(await service.advanceUntilEnded(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await act(off, 'START')).toMatchObject(failsForItsDisk)
  await eventually(async () => (await service.call('diskGet', { params: { disk_id: disk } })).status === 404)
  const seen = await service.sql(`SELECT FROM events_written WHERE type = 'disk.lost' AND resource_id = $1`, [
    disk,
  ])
  expect(seen).toHaveLength(1)
  await registerAgain(location, host.name)
})
