import { createDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { defaultConfig } from '@slipway/testing/fleet.ts'
import { clockOf } from '@slipway/testing/postgres/clock.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Database } from '../../src/postgres/database.ts'
import { SharedTasks } from '../../src/runner/shared-tasks.ts'

let store: Awaited<ReturnType<typeof createDatabase>>
let database: Database
beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 4 })
})
afterAll(async () => {
  await database.close()
  await store.drop()
})

const log = { info() {}, warn() {}, error() {} }
const config = defaultConfig()
config.operations.renewMs = 20

/** Returns the shared tasks of a new process. */
const newProcess = () => new SharedTasks({ database, config, log })
const { advance: pass } = clockOf((text, values) => database.query({ text, values }))
const never = () => new Promise<never>(() => {})

/** Returns whether the process gets the task and runs it. The task does nothing. */
const gets = (process: SharedTasks, name: string, everyMs = 60_000) =>
  process.runIfDue({ name, everyMs }, async () => {})

test('a task runs in one of several concurrent processes, and again only when it is due', async () => {
  const processes = Array.from({ length: 8 }, newProcess)
  const got = await Promise.all(processes.map((process) => gets(process, 'once')))
  expect(got.filter(Boolean)).toHaveLength(1)
  expect(await gets(newProcess(), 'once')).toBe(false)
  await pass('61 seconds')
  expect(await gets(newProcess(), 'once')).toBe(true)
})

test('a process keeps a long task, which another process takes over when the first one dies', async () => {
  const [worker, other] = [newProcess(), newProcess()]
  let isOver = false
  let end = () => {}
  const turn = worker.runIfDue(
    { name: 'long', everyMs: 0 },
    () => new Promise<void>((resolve) => (end = resolve)),
  )
  void turn.then(() => (isOver = true))
  const untilOf = async () =>
    (await database.query({ text: `SELECT until FROM leases WHERE name = 'long'` })).rows[0]?.until as Date
  const before = await eventually(untilOf)
  await eventually(async () => (await untilOf()) > before)
  expect(await gets(other, 'long')).toBe(false)
  expect(isOver).toBe(false)
  end()
  await turn

  // The timers of a process stop when it dies.
  const dying = defaultConfig()
  dying.operations.renewMs = 3_600_000
  const slow = new SharedTasks({ database, config: dying, log })
  await new Promise<void>((hasBegun) => {
    void slow.runIfDue({ name: 'dead', everyMs: 0 }, () => {
      hasBegun()
      return never()
    })
  })
  expect(await gets(other, 'dead')).toBe(false)
  await pass('11 seconds')
  expect(await gets(other, 'dead')).toBe(true)
})

test('a process that lost its task to another process stops its work', async () => {
  const sleeper = newProcess()
  let signal: AbortSignal | undefined
  void sleeper.runIfDue({ name: 'lost', everyMs: 0 }, (given) => {
    signal = given
    return never()
  })
  await eventually(() => signal)
  await database.query({ text: `UPDATE leases SET until = slipway_now() WHERE name = 'lost'` })
  const successor = newProcess()
  await eventually(async () => {
    await database.query({ text: `UPDATE leases SET until = slipway_now() WHERE name = 'lost'` })
    return gets(successor, 'lost')
  })
  await eventually(() => signal?.aborted)
})

test('the pause after a run can depend on the result of the run', async () => {
  const process = newProcess()
  let longestMs = 600_000
  const task = {
    ...{ name: 'rests', everyMs: 0 },
    get rest() {
      return { factor: 1e9, longestMs }
    },
  }
  await process.runIfDue(task, async () => {
    longestMs = 5_000
  })
  expect(await gets(newProcess(), 'rests')).toBe(false)
  await pass('6 seconds')
  expect(await gets(newProcess(), 'rests')).toBe(true)
})

test('a task that fails is released, and the caller gets its error', async () => {
  const process = newProcess()
  const failing = process.runIfDue({ name: 'fails', everyMs: 0 }, () =>
    Promise.reject(new Error('no engine')),
  )
  await expect(failing).rejects.toThrow('no engine')
  expect(await gets(newProcess(), 'fails')).toBe(true)
})

test('the tasks of a stopping process are released immediately, and setting the clock back blocks no process', async () => {
  const leaving = newProcess()
  await gets(leaving, 'left', 600_000)
  expect(await gets(newProcess(), 'left')).toBe(false)
  await leaving.release()
  expect(await gets(newProcess(), 'left')).toBe(true)
  await pass('-2 hours')
  expect(await gets(newProcess(), 'left')).toBe(true)
})
