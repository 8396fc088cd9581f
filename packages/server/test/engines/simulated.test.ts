import { createDatabase, type TestDatabase } from '@slipway/testing/database.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { SimulatedEngine } from '../../src/engines/simulated/engine.ts'
import { Database } from '../../src/postgres/database.ts'
import { putSimulatedHosts } from '../../src/store/simulated/hosts.ts'
import { conformanceChecks, engineConformance } from '../support/conformance.ts'
import { ConformanceBench, type EngineUnderTest } from '../support/conformance-bench.ts'
import { mutant, mutations } from '../support/engine-mutants.ts'

const connections = 8
let store: TestDatabase
let database: Database
beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: connections })
})
afterAll(async () => {
  await database?.close()
  await store?.drop()
})

const publicAddress = '198.18.0.7'

/** Creates an engine with one host, in its own location. */
async function subjectAt(location: string): Promise<EngineUnderTest & { engine: SimulatedEngine }> {
  const hosts = [{ name: 'host-1', model: 'A100 80GB SXM', gpuCount: 2 }]
  await database.transaction((tx) => putSimulatedHosts(tx, location, hosts))
  const engine = new SimulatedEngine({ database, location, bootMs: [200, 200], quarantineMs: 20 })
  const stranger = { direction: 'ingress', protocol: 'tcp', peer: '203.0.113.7' } as const
  return {
    engine,
    host: 'host-1',
    image: { name: 'ubuntu24.04-nvidia:latest', source: {} },
    publicAddress,
    consolePrompt: /root@conformance-1:~# /,
    isOpen: (id, port) => engine.wouldPass(id, { ...stranger, destinationPort: port }),
    patienceMs: 60_000,
    close: async () => {},
  }
}

engineConformance('simulated', () => subjectAt('us-east1-a'))

/** Returns the first check that an engine with this mutation fails; undefined if it passes all. */
async function firstFailedCheck(name: string): Promise<string | undefined> {
  const subject = await subjectAt(name)
  const mutation = mutations[name] ?? (() => ({}))
  const engine = mutant(
    { engine: subject.engine, database, location: name, publicAddress, late: [] },
    mutation,
  )
  // Calls without a fault get as much time as a busy machine may need.
  const patienceMs = name in mutations ? 5_000 : subject.patienceMs!
  const bench = await ConformanceBench.open({ ...subject, engine, patienceMs })
  for (const [what, check] of Object.entries(conformanceChecks)) {
    const hasPassed = await check(bench).then(
      () => true,
      () => false,
    )
    if (!hasPassed) return what
  }
  return undefined
}

test('the conformance suite detects every faulty engine and passes the correct one', {
  timeout: 300_000,
}, async () => {
  const waiting = ['no fault', ...Object.keys(mutations)]
  const passed: string[] = []
  // The number of parallel calls equals the number of connections.
  const runWaiting = async () => {
    for (let name = waiting.shift(); name; name = waiting.shift())
      if (!(await firstFailedCheck(name))) passed.push(name)
  }
  await Promise.all(Array.from({ length: connections }, runWaiting))
  expect(passed).toEqual(['no fault'])
})

test('moving a VM to an unavailable host fails with the error unavailable, not stale', async () => {
  const location = 'eu-north1-a'
  const subject = await subjectAt(location)
  const away = { name: 'host-2', model: 'A100 80GB SXM', gpuCount: 2 }
  await database.transaction((tx) => putSimulatedHosts(tx, location, [away]))
  const bench = await ConformanceBench.open(subject)
  const off = { firewall: { rules: [], generation: 1 }, power: 'off' as const }
  await subject.engine.ensureVm(bench.spec, off, bench.next())
  await database.query({ text: `UPDATE simulated_hosts SET is_lost = true WHERE name = 'host-2'` })
  const moved = { ...bench.spec, host: 'host-2', isNew: false }
  await expect(subject.engine.ensureVm(moved, off, bench.next())).rejects.toMatchObject({
    kind: 'unavailable',
  })
})

test('a fault counts from the moment it is added, even if a check for faults began before', async () => {
  const gate = () => {
    let open = () => {}
    const isOpen = new Promise<void>((resolve) => {
      open = resolve
    })
    return { open, isOpen }
  }
  const [read, released] = [gate(), gate()]
  class SlowDatabase extends Database {
    override async query(config: Parameters<Database['query']>[0]) {
      const result = await super.query(config)
      if (config.name !== 'simulated_fault_any') return result
      read.open()
      await released.isOpen
      return result
    }
  }
  const slow = new SlowDatabase({ url: store.url, poolSize: 2 })
  onTestFinished(() => slow.close())
  const engine = new SimulatedEngine({
    database: slow,
    location: 'any',
    bootMs: [0, 0],
    quarantineMs: 0,
  })
  const id = '00000000-0000-4000-8000-000000000001'
  const earlier = engine.inspectCapture({ id, host: '' }).catch(() => {})
  await read.isOpen
  await engine.addFault({ method: 'inspectCapture', kind: 'reject', resourceId: id, times: 2 })
  released.open()
  await earlier
  await expect(engine.inspectCapture({ id, host: '' })).rejects.toThrow('rejected')
})
