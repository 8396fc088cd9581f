import { readdirSync } from 'node:fs'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ProgramBench } from '../../support/incus/program-bench.ts'

const patienceMs = 120_000
let setup: ProgramBench
beforeAll(async () => {
  setup = await ProgramBench.open(2)
}, 300_000)
afterAll(() => setup?.close(), 60_000)

const newVm = (name: string) => setup.newVm({ name, public_ip: 'none' })
const act = async (id: string, action: string) =>
  setup.resources.succeeded(await setup.resources.act(id, { action }))
const remove = async (id: string) => setup.resources.succeeded(await setup.resources.removeVm(id))
const stateOf = (id: string) => setup.resources.stateOf(id)
const becomes = (id: string, state: string) =>
  eventually(async () => (await stateOf(id)) === state, patienceMs)
const isRunning = async (id: string) => {
  const path = `/1.0/instances/vm-${id}?project=slipway`
  const { status } = JSON.parse(await setup.bench.members[0]!.cli('query', path)) as { status: string }
  return status === 'Running'
}
/** Returns the rules for packets to a VM in the kernel of its member. */
const rulesOf = async (id: string) => {
  const all = await Promise.all(setup.bench.members.map((member) => member.packetFilter()))
  const chains = all.flatMap((text) => text.split('chain '))
  return chains.find((chain) => chain.startsWith('ingress-') && chain.includes(id))
}

test('after a backup is restored, VMs on a cluster that changed after the backup are handled as documented', async () => {
  const [kept, stopped, started, deleted] = [
    await newVm('kept'),
    await newVm('stopped'),
    await newVm('started'),
    await newVm('deleted'),
  ]
  await act(started, 'STOP')
  const backups = setup.path('backups')
  expect(await setup.command('backup', '--to', backups)).toMatchObject({ code: 0, errors: '' })

  await setup.resources.newRule({ name: 'later', destination_ports: ['8888'] })
  expect(await rulesOf(kept)).toContain('8888')
  await act(kept, 'STOP')
  await act(kept, 'START')
  await act(stopped, 'STOP')
  await act(started, 'START')
  await remove(deleted)
  const created = await newVm('created')
  await setup.stop()
  const backup = `${backups}/${readdirSync(backups)[0]}`
  expect(await setup.command('restore', backup)).toMatchObject({ code: 0, errors: '' })

  const restored = await setup.start('[operations]\nrestored = true\n')
  for (const { id } of await setup.hosts()) await setup.cordon(id, true)
  await restored.until(new RegExp(`${created}.*unknown object`))
  const { items } = await setup.ok('vmList')
  expect(items.map(({ id }) => id).toSorted()).toEqual([kept, stopped, started, deleted].toSorted())
  // The rules are those of the database again, and a new rule is applied.
  await eventually(async () => !(await rulesOf(kept))!.includes('8888'), patienceMs)
  await setup.resources.newRule({ name: 'today', destination_ports: ['9999'] })
  expect(await rulesOf(kept)).toContain('9999')

  expect([await stateOf(kept), await isRunning(kept)]).toEqual(['STATE_RUNNING', true])
  await becomes(stopped, 'STATE_CRASHED')
  await act(stopped, 'STOP')
  await becomes(deleted, 'STATE_CRASHED')
  await remove(deleted)
  expect([await stateOf(started), await isRunning(started)]).toEqual(['STATE_SHUTOFF', true])
  expect(await isRunning(created)).toBe(true)
  await setup.bench.members[0]!.cli('--project', 'slipway', 'delete', '--force', `vm-${created}`)

  for (const { id } of await setup.hosts()) await setup.cordon(id, false)
  await setup.stop()
  await setup.start()
  await eventually(async () => !(await isRunning(started)), patienceMs)
  for (const id of [stopped, started]) await act(id, 'START')
  for (const id of [kept, stopped, started]) {
    expect([await stateOf(id), await isRunning(id)]).toEqual(['STATE_RUNNING', true])
    await remove(id)
  }
  expect(await setup.bench.members[0]!.instances()).toEqual([])
}, 600_000)
