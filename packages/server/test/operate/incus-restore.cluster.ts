import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { Launcher } from '@slipway/testing/launcher.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { incusLocation } from '../support/incus/config.ts'
import { IncusBench, type IncusMember } from '../support/incus-bench.ts'
import { BackedUpServer } from '../support/postgres/backed-up-server.ts'

const launcher = new Launcher()
const server = new BackedUpServer(launcher, launcher.newDataDir())
const backups = join(launcher.dir, 'backups')
let bench: IncusBench
let member: IncusMember
let location: string

beforeAll(async () => {
  bench = await IncusBench.alone()
  member = bench.members[0]!
  await bench.startAgents()
  location = incusLocation({ socket: member.socket })
}, 120_000)
afterAll(async () => {
  await launcher.clear()
  await bench?.close()
}, 60_000)

const newVm = (name: string) =>
  server.createVm(name, {
    type: 'a100-80gb.1x',
    location: 'local-a',
    image: 'guest:latest',
    public_ip: 'none',
  })

/** What Incus itself says about the instance of each VM. */
async function inIncus(): Promise<Map<string, string>> {
  const listed = await member.cli('query', '/1.0/instances?recursion=1&project=slipway')
  const instances = JSON.parse(listed) as { name: string; status: string }[]
  return new Map(instances.map(({ name, status }) => [name.replace(/^vm-/, ''), status]))
}

test('a backup is restored while VMs on Incus have changed, and no instance is lost', async () => {
  await server.start(location)
  const adopted = await server.command('images', 'adopt', 'guest:latest', '--config', server.configFile)
  expect(adopted).toMatchObject({ code: 0, output: 'guest:latest is available in local-a\n' })
  await eventually(async () => {
    const { body } = await server.asOperator('GET', '/hosts')
    return (body.items as { state: string }[]).some(({ state }) => state === 'up')
  }, 60_000)
  const kept = await newVm('kept')
  const started = await newVm('started')
  await server.act(started, 'STOP')
  const stopped = await newVm('stopped')
  const deleted = await newVm('deleted')
  const backup = await server.command('backup', '--to', backups)
  expect([backup.code, backup.errors]).toEqual([0, ''])

  await server.act(started, 'START')
  await server.act(stopped, 'STOP')
  await server.deleteVm(deleted)
  const created = await newVm('created')
  await server.stop()
  const changed = await inIncus()
  expect(Object.fromEntries(changed)).toEqual({
    [kept]: 'Running',
    [started]: 'Running',
    [stopped]: 'Stopped',
    [created]: 'Running',
  })
  const restored = await server.command('restore', join(backups, readdirSync(backups)[0]!))
  expect([restored.code, restored.errors]).toEqual([0, ''])

  // The database has the generations of the backup, which Incus refuses without the setting.
  await server.start(`[operations]\nrestored = true\n${location}`)
  await server.program.until(new RegExp(`${created}.*unknown object`))
  for (const id of [stopped, deleted])
    await eventually(async () => (await server.stateOf(id)) === 'STATE_CRASHED', 60_000)
  expect(await inIncus()).toEqual(changed)
  await server.act(stopped, 'STOP')
  await server.act(stopped, 'START')
  await server.deleteVm(deleted)
  await server.act(kept, 'STOP')
  await server.act(kept, 'START')
  expect(await server.stateOf(started)).toBe('STATE_SHUTOFF')
  expect(Object.fromEntries(await inIncus())).toEqual({
    [kept]: 'Running',
    [started]: 'Running',
    [stopped]: 'Running',
    [created]: 'Running',
  })
  await server.stop()

  // Without the setting, the next inspection stops what is stopped according to the database.
  await server.start(location)
  await eventually(async () => (await inIncus()).get(started) === 'Stopped', 60_000)
  await server.act(started, 'START')
  expect((await inIncus()).get(created)).toBe('Running')
  await server.stop()
}, 600_000)
