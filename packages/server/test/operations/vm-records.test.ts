import { resourcesOf } from '@slipway/testing/resources.ts'
import { useService } from '@slipway/testing/service.ts'
import { wrongVmRecords } from '@slipway/testing/vm-records.ts'
import { expect, test } from 'vitest'

test('the stored record of a VM matches its tables after every kind of change', async () => {
  const service = await useService()
  const { newVm, newDisk, act, attach, detach, succeeded } = resourcesOf(service)
  await service.clock.freeze('2026-11-10T00:00:00Z')
  await service.sql(`UPDATE prices SET valid_from = '2026-01-01'`)
  const vm_id = await newVm({ type: 'a100.1x' })
  const disk_id = await newDisk()
  const odd = 'say "hi" \\ to the team ✓'
  const update = (body: object) => service.ok('vmUpdate', { params: { vm_id }, body: body as never })
  const changes: Record<string, () => Promise<unknown>> = {
    creation: async () => {},
    'an hour': () => service.clock.freeze('2026-11-10T01:00:00.123Z'),
    'a name': () => update({ name: 'renamed' }),
    'labels and a description': () => update({ labels: { team: 'ml' }, description: odd }),
    'a time to live': async () => succeeded(await update({ ttl_seconds: 86_400 })),
    'a host key': () => service.sql(`UPDATE vms SET ssh_host_key = 'ssh-ed25519 AAAA'`),
    'a disk': async () => succeeded(await attach(vm_id, disk_id)),
    'a larger disk': async () =>
      succeeded(await service.ok('diskUpdate', { params: { disk_id }, body: { size: '20GiB' } })),
    'a name of the disk': () => service.ok('diskUpdate', { params: { disk_id }, body: { name: 'data' } }),
    'a price': () =>
      service.ok('adminPriceSet', {
        token: service.credentials.operator_key,
        body: { items: [{ product_name: 'a100.1x', unit: 'vm_hour', usd: 2.5 }] },
      }),
    'another hour': () => service.clock.freeze('2026-11-10T02:00:00.457Z'),
    'a stop': async () => succeeded(await act(vm_id, { action: 'STOP' })),
    'another type': async () => succeeded(await update({ type: 'a100.2x' })),
    'a start': async () => succeeded(await act(vm_id, { action: 'START' })),
    'a minute': () => service.clock.freeze('2026-11-10T02:01:00.999Z'),
    'no disk': async () => succeeded(await detach(vm_id, disk_id)),
    'a reset': async () => succeeded(await act(vm_id, { action: 'RESET' })),
  }
  for (const [name, change] of Object.entries(changes)) {
    await change()
    expect(await wrongVmRecords(service), `after ${name}`).toEqual([])
  }
})

test.each([
  ['data_disks', '0'],
  ['metered_since', `metered_since - interval '1 second'`],
  ['metered_since', 'NULL'],
  ['spent_usd_ms', 'spent_usd_ms + 3600000'],
])('a wrong %s (%s) in the row of a VM is visible in its record', async (column, value) => {
  const service = await useService()
  const { newVm, newDisk, attach, succeeded } = resourcesOf(service)
  await service.clock.freeze('2026-11-10T00:00:00Z')
  await service.sql(`UPDATE prices SET valid_from = '2026-01-01'`)
  const vmId = await newVm()
  await succeeded(await attach(vmId, await newDisk()))
  await service.clock.freeze('2026-11-10T01:00:00Z')
  expect(await wrongVmRecords(service)).toEqual([])
  await service.sql(`UPDATE vms SET ${column} = ${value}`)
  expect(await wrongVmRecords(service)).toHaveLength(1)
})
