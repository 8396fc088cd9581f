import { checkInvariants } from '@slipway/testing/invariants.ts'
import { addProject, ownerToken } from '@slipway/testing/people.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { useService, withLevers } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'

test('a VM shows its price, its cost so far, and when it started running', async () => {
  const service = await useService(withLevers, '2026-11-10T00:00:00Z')
  const resources = resourcesOf(service)
  const vm_id = await resources.newVm({ type: 'a100.1x' })
  const read = () => service.ok('vmGet', { params: { vm_id } })
  expect(await read()).toMatchObject({
    usd_per_hour: 1.45,
    cost_usd: 0,
    started_at: '2026-11-10T00:00:00.000Z',
  })

  await service.levers.clock.advance({ to: '2026-11-10T10:00:00Z' })
  expect(await read()).toMatchObject({ cost_usd: 14.5 })
  // A new price is valid from now on.
  await service.ok('adminPriceSet', {
    token: service.credentials.operator_key,
    body: { items: [{ product_name: 'a100.1x', unit: 'vm_hour', usd: 2 }] },
  })
  await service.levers.clock.advance({ to: '2026-11-10T12:00:00Z' })
  expect(await read()).toMatchObject({ usd_per_hour: 2, cost_usd: 18.5 })

  await resources.succeeded(await resources.act(vm_id, { action: 'STOP' }))
  await service.levers.clock.advance({ to: '2026-11-11T00:00:00Z' })
  expect(await read()).toMatchObject({
    state: 'STATE_SHUTOFF',
    usd_per_hour: 2,
    cost_usd: 18.5,
    started_at: '',
  })

  await resources.succeeded(await resources.act(vm_id, { action: 'START' }))
  expect(await read()).toMatchObject({ started_at: '2026-11-11T00:00:00.000Z' })
  await service.levers.clock.advance({ to: '2026-11-11T00:30:00Z' })
  const [listed] = (await service.ok('vmList')).items
  expect(listed).toMatchObject({ cost_usd: 19.5, started_at: '2026-11-11T00:00:00.000Z' })
  // Costs that were settled do not change.
  await service.sql('DELETE FROM prices')
  expect(await read()).toMatchObject({ usd_per_hour: null, cost_usd: 18.5 })
})

test('the cost of a VM is the sum of its meters, with any number of stops and price changes', async () => {
  const service = await useService(withLevers, '2026-11-10T00:00:00Z')
  const { newVm, act, succeeded } = resourcesOf(service)
  const priceSet = (usd: number) =>
    service.ok('adminPriceSet', {
      token: service.credentials.operator_key,
      body: { items: [{ product_name: 'a100.1x', unit: 'vm_hour', usd }] },
    })
  let hour = 0
  await priceSet(2)
  const vm_id = await newVm({ type: 'a100.1x' })
  let usd = 0
  let price = 2
  let isOn = true
  // Every order of two changes, with prices that are set while the VM runs and while it is off.
  for (const change of [
    'price',
    'stop',
    'price',
    'start',
    'stop',
    'start',
    'price',
    'price',
    'stop',
    'price',
    'start',
  ]) {
    hour++
    await service.levers.clock.advance({ seconds: 3600 })
    if (isOn) usd += price
    if (change === 'price') await priceSet(++price)
    else {
      await succeeded(await act(vm_id, { action: change === 'stop' ? 'STOP' : 'START' }))
      isOn = change === 'start'
    }
    const { cost_usd } = await service.ok('vmGet', { params: { vm_id } })
    expect(cost_usd, `after ${change} in hour ${hour}`).toBe(usd)
    expect((await service.ok('vmList')).items[0]).toMatchObject({ id: vm_id, cost_usd: usd })
  }
  await checkInvariants(service)
})

test('a VM that is read repeatedly shows its current state, exact to the millisecond and the millionth of a dollar', async () => {
  const service = await useService()
  const { newVm, newDisk, act, attach, detach, succeeded } = resourcesOf(service)
  await service.clock.freeze('2026-11-10T00:00:00Z')
  const vm_id = await newVm({ type: 'a100.1x' })
  const disk = await newDisk()
  const read = () => service.ok('vmGet', { params: { vm_id } })
  const change = async (action: string) => succeeded(await act(vm_id, { action }))
  const steps: [string, () => Promise<unknown>][] = [
    ['nothing', async () => {}],
    ['an hour', () => service.clock.freeze('2026-11-10T01:00:00.001Z')],
    ['labels', () => service.ok('vmUpdate', { params: { vm_id }, body: { labels: { team: 'ml' } } })],
    ['a price', () => service.sql('UPDATE prices SET usd = 1.234567')],
    ['a minute', () => service.clock.freeze('2026-11-10T01:01:00.017Z')],
    ['an hour back', () => service.clock.freeze('2026-11-10T00:01:00.013Z')],
    ['a disk', async () => succeeded(await attach(vm_id, disk))],
    ['a detached disk', async () => succeeded(await detach(vm_id, disk))],
    ['a stop', () => change('STOP')],
    ['a day', () => service.clock.freeze('2026-11-11T00:00:00.999Z')],
    ['a start', () => change('START')],
    ['a second', () => service.clock.freeze('2026-11-11T00:00:01.998Z')],
    [
      'a future price',
      () =>
        service.sql(`INSERT INTO prices (product_name, valid_from, unit, usd)
                     VALUES ('a100.1x', '2026-11-11T00:01:00Z', 'vm_hour', 9)`),
    ],
    ['after the future price', () => service.clock.freeze('2026-11-11T00:02:00.5Z')],
    ['before the current meter', () => service.clock.freeze('2026-11-10T23:00:00Z')],
    ['still before the current meter', () => service.clock.freeze('2026-11-10T23:30:00Z')],
  ]
  for (const [name, step] of steps) {
    await step()
    const [listed] = (await service.ok('vmList')).items
    expect(await read(), name).toEqual(listed)
    expect(await read(), `${name}, again`).toEqual(listed)
  }
  // The VM is found in its own project, but not in another project of the same owner.
  const token = await ownerToken(service)
  const project_id = await addProject(service, token, service.credentials.organization_id, 'another')
  await service.ok('vmGet', { token, params: { vm_id } })
  expect((await service.call('vmGet', { token, params: { project_id, vm_id } })).status).toBe(404)
  await succeeded(await service.ok('vmDelete', { params: { vm_id } }))
  expect((await service.call('vmGet', { params: { vm_id } })).status).toBe(404)
})
