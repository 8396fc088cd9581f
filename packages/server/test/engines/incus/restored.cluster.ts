import { readdirSync } from 'node:fs'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ProgramBench } from '../../support/incus/program-bench.ts'

const patienceMs = 120_000
let stand: ProgramBench
beforeAll(async () => {
  stand = await ProgramBench.open(2)
}, 300_000)
afterAll(() => stand?.close(), 60_000)

const newVm = (name: string) => stand.newVm({ name, public_ip: 'none' })
const act = async (id: string, action: string) =>
  stand.resources.succeeded(await stand.resources.act(id, { action }))
const remove = async (id: string) => stand.resources.succeeded(await stand.resources.removeVm(id))
const stateOf = (id: string) => stand.resources.stateOf(id)
const becomes = (id: string, state: string) =>
  eventually(async () => (await stateOf(id)) === state, patienceMs)
const isRunning = async (id: string) => {
  const path = `/1.0/instances/vm-${id}?project=slipway`
  const { status } = JSON.parse(await stand.bench.members[0]!.cli('query', path)) as { status: string }
  return status === 'Running'
}
/** The rules for packets to a VM, in the kernel of its member. */
const rulesOf = async (id: string) => {
  const all = await Promise.all(stand.bench.members.map((member) => member.packetFilter()))
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
  const backups = stand.path('backups')
  expect(await stand.command('backup', '--to', backups)).toMatchObject({ code: 0, errors: '' })

  await stand.resources.newRule({ name: 'later', destination_ports: ['8888'] })
  expect(await rulesOf(kept)).toContain('8888')
  await act(kept, 'STOP')
  await act(kept, 'START')
  await act(stopped, 'STOP')
  await act(started, 'START')
  await remove(deleted)
  const created = await newVm('created')
  await stand.stop()
  const backup = `${backups}/${readdirSync(backups)[0]}`
  expect(await stand.command('restore', backup)).toMatchObject({ code: 0, errors: '' })

  const restored = await stand.start('[operations]\nrestored = true\n')
  for (const { id } of await stand.hosts()) await stand.cordon(id, true)
  await restored.until(new RegExp(`${created}.*unknown object`))
  const { items } = await stand.ok('vmList')
  expect(items.map(({ id }) => id).toSorted()).toEqual([kept, stopped, started, deleted].toSorted())
  // The rules are those of the database again, and a new rule is applied.
  await eventually(async () => !(await rulesOf(kept))!.includes('8888'), patienceMs)
  await stand.resources.newRule({ name: 'today', destination_ports: ['9999'] })
  expect(await rulesOf(kept)).toContain('9999')

  expect([await stateOf(kept), await isRunning(kept)]).toEqual(['STATE_RUNNING', true])
  await becomes(stopped, 'STATE_CRASHED')
  await act(stopped, 'STOP')
  await becomes(deleted, 'STATE_CRASHED')
  await remove(deleted)
  expect([await stateOf(started), await isRunning(started)]).toEqual(['STATE_SHUTOFF', true])
  expect(await isRunning(created)).toBe(true)
  await stand.bench.members[0]!.cli('--project', 'slipway', 'delete', '--force', `vm-${created}`)

  for (const { id } of await stand.hosts()) await stand.cordon(id, false)
  await stand.stop()
  await stand.start()
  await eventually(async () => !(await isRunning(started)), patienceMs)
  for (const id of [stopped, started]) await act(id, 'START')
  for (const id of [kept, stopped, started]) {
    expect([await stateOf(id), await isRunning(id)]).toEqual(['STATE_RUNNING', true])
    await remove(id)
  }
  expect(await stand.bench.members[0]!.instances()).toEqual([])
}, 600_000)
