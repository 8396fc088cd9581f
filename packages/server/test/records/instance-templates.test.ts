import { createHash } from 'node:crypto'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { addKey, ownerToken, tokenOfNew } from '@slipway/testing/people.ts'
import { freshName, resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
let viewer: string
let readKey: string
beforeAll(async () => {
  service = await startService()
  const { organization_id, project_id } = service.credentials
  owner = await ownerToken(service)
  viewer = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'viewer' } })
  readKey = (await addKey(service, owner, project_id, 'read')).secret
})
afterAll(() => service.close())

const members = {
  type: 'a100.1x',
  location: 'us-east1-a',
  image: 'ubuntu24.04-nvidia:latest',
  ssh_public_key: sshKey,
}
const create = (body: object) => service.ok('instanceTemplateCreate', { body })
const { ended, succeeded, removeVm } = (() => {
  const all = () => resourcesOf(service)
  return {
    ended: (...args: Parameters<ReturnType<typeof resourcesOf>['ended']>) => all().ended(...args),
    succeeded: (...args: Parameters<ReturnType<typeof resourcesOf>['succeeded']>) => all().succeeded(...args),
    removeVm: async (id: string) => all().succeeded(await all().removeVm(id)),
  }
})()

test('twenty versions created at the same time are numbered from 1 to 20 without a gap', async () => {
  const name = freshName('trainer')
  const created = await Promise.all(Array.from({ length: 20 }, () => create({ name, new_version: true })))
  const numbers = created.map(({ version }) => version).toSorted((one, other) => one - other)
  expect(numbers).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  const { items } = await service.ok('instanceTemplateList', { query: { names: name, latest: true } })
  expect(items).toMatchObject([{ name, version: 20 }])
})

test('a name that exists needs new_version, even if two requests arrive at the same time', async () => {
  const name = freshName('trainer')
  const responses = await Promise.all(
    [1, 2].map(() => service.call('instanceTemplateCreate', { body: { name } })),
  )
  expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 409])
  expect(responses.find(({ status }) => status === 409)!.body).toMatchObject({ code: 'already_exists' })
})

test('a template that is read and written back creates an identical version', async () => {
  const body = {
    name: freshName('trainer'),
    ...members,
    startup_script: '#!/bin/sh\necho hello\n',
    new_disks: [{ size: '10GiB', block_size: 4096 }],
    labels: { team: 'ml' },
    placement_policy: 'spread',
    ttl_seconds: 3600,
  }
  const { id } = await create(body)
  const read = await service.ok('instanceTemplateGet', { params: { instance_template_id: id } })
  expect(read).toMatchObject(body)
  const written = await create({ ...read, new_version: true })
  const { id: _1, version: _2, created_at: _3, ...before } = read
  const { id: _4, version, created_at: _6, ...after } = written
  expect(version).toBe(2)
  expect(after).toEqual(before)
})

test('values in a request override those of its template', async () => {
  const { id } = await create({ name: freshName('trainer'), ...members, labels: { from: 'template' } })
  const name = freshName('vm')
  const body = { name, instance_template_id: id, type: 'a100.2x' }
  const vm_id = await succeeded(await service.ok('vmCreate', { body }))
  const vm = await service.ok('vmGet', { params: { vm_id } })
  expect(vm).toMatchObject({
    ...{ name, type: 'a100.2x', location: members.location, image: members.image },
    labels: { from: 'template' },
    instance_template_id: id,
  })
  await service.ok('instanceTemplateDelete', { params: { instance_template_id: id } })
  expect(await service.ok('vmGet', { params: { vm_id } })).toMatchObject({ instance_template_id: id })
  expect(await service.call('vmCreate', { body: { ...body, name: freshName('vm') } })).toMatchObject({
    status: 400,
    body: { details: [{ field: '/instance_template_id' }] },
  })
  await removeVm(vm_id)
})

test('a template is checked like a creation when a VM is created from it', async () => {
  const { id } = await create({ name: freshName('trainer'), ...members, image: 'gone:latest' })
  const body = { name: freshName('vm'), instance_template_id: id }
  const own = await service.call('vmCreate', { body: vmBody({ image: 'gone:latest' }) })
  const response = await service.call('vmCreate', { body })
  expect(response).toMatchObject({ status: 400, body: { message: (own.body as never as Error).message } })
  const { id: incomplete } = await create({ name: freshName('trainer'), image: members.image })
  expect(
    await service.call('vmCreate', { body: { ...body, instance_template_id: incomplete } }),
  ).toMatchObject({
    status: 400,
    body: { details: [{ field: '/type', message: 'is required' }] },
  })
})

test('viewers and read keys never see a script', async () => {
  const startup_script = '#!/bin/sh\nexport TOKEN=very-secret\n'
  const hidden = `sha256:${createHash('sha256').update(startup_script).digest('hex')}`
  const { id } = await create({ name: freshName('trainer'), ...members, startup_script })
  const accepted = await service.ok('vmCreate', { body: vmBody({ startup_script }) })
  const { operation_id } = accepted.operation
  await succeeded(accepted)
  const params = { instance_template_id: id, operation_id }
  for (const token of [viewer, readKey]) {
    const responses = [
      await service.ok('instanceTemplateGet', { token, params }),
      await service.ok('instanceTemplateList', { token }),
      await service.ok('operationGet', { token, params }),
      await service.ok('operationGet', { token, params, query: { wait: 1 } }),
      await service.ok('vmOperationGet', { token, params }),
      await service.ok('operationList', { token }),
      await service.ok('eventList', { token }),
    ]
    expect(JSON.stringify(responses)).not.toContain('very-secret')
    expect(responses[0]).toMatchObject({ startup_script: hidden })
    expect(responses[2]).toMatchObject({ metadata: { request: { startup_script: hidden } } })
  }
  for (const token of [owner, service.credentials.access_key]) {
    expect(await service.ok('instanceTemplateGet', { token, params })).toMatchObject({ startup_script })
    expect(await service.ok('operationGet', { token, params })).toMatchObject({
      metadata: { request: { startup_script } },
    })
  }
  const { items } = await service.ok('operationList')
  expect(items.find((each) => each.operation_id === operation_id)!.metadata.request).toMatchObject({
    startup_script: hidden,
  })
  await removeVm(accepted.operation.metadata.id)
})

test('a viewer who waits for an operation gets its end without the script', async () => {
  await service.clock.freeze()
  const startup_script = 'echo very-secret'
  const accepted = await service.ok('vmCreate', { body: vmBody({ startup_script }) })
  const params = { operation_id: accepted.operation.operation_id }
  const waiting = service.ok('operationGet', { token: viewer, params, query: { wait: 20 } })
  await succeeded(accepted)
  expect(JSON.stringify(await waiting)).not.toContain('very-secret')
  await service.clock.thaw()
  await removeVm(accepted.operation.metadata.id)
})

test('new disks are created with the VM, attached to it, and stay when it is deleted', async () => {
  const name = freshName('vm')
  const body = vmBody({ name, new_disks: [{ size: '10GiB' }, { size: '20GiB', block_size: 4096 }] })
  const vm_id = await succeeded(await service.ok('vmCreate', { body }))
  const vm = await service.ok('vmGet', { params: { vm_id } })
  expect(vm.disks.map((disk) => disk.name)).toEqual([`${name}-os`, `${name}-disk-1`, `${name}-disk-2`])
  const { items } = await service.ok('diskList', { query: { names: `${name}-disk-1,${name}-disk-2` } })
  expect(
    items.map(({ state, size, attached_to }) => [state, size, attached_to[0]?.vm_id]).toSorted(),
  ).toEqual([
    ['available', '10GiB', vm_id],
    ['available', '20GiB', vm_id],
  ])
  await settle(service)
  await checkInvariants(service)
  await removeVm(vm_id)
  for (const { id } of items) {
    const disk = await service.ok('diskGet', { params: { disk_id: id } })
    expect(disk).toMatchObject({ state: 'available', attached_to: [] })
    await succeeded(await service.ok('diskDelete', { params: { disk_id: id } }))
  }
})

test('the new disks of a VM that does not boot, or is deleted before it runs, leave nothing behind', async () => {
  const simulator = service.simulator()
  await simulator.addFault({ method: 'ensureVm', kind: 'reject' })
  const failed = await ended(
    await service.ok('vmCreate', { body: vmBody({ new_disks: [{ size: '10GiB' }] }) }),
  )
  expect(failed).toMatchObject({ state: 'FAILED' })
  await settle(service)
  await checkInvariants(service)
  const { operation } = await service.ok('vmCreate', { body: vmBody({ new_disks: [{ size: '10GiB' }] }) })
  const { id } = operation.metadata
  await service.ended((await service.ok('vmDelete', { params: { vm_id: id } })).operation.operation_id)
  await settle(service)
  await checkInvariants(service)
})

test('new disks are refused for a name that is taken, a wrong size and a type that cannot have them', async () => {
  const name = freshName('vm')
  const taken = await succeeded(
    await service.ok('diskCreate', {
      body: { name: `${name}-disk-1`, size: '10GiB', location: members.location },
    }),
  )
  const refused = (new_disks: object[]) => service.call('vmCreate', { body: vmBody({ name, new_disks }) })
  expect(await refused([{ size: '10GiB' }])).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  expect(await refused([{ size: '1TiB', type: 'shared-volume' }])).toMatchObject({
    status: 400,
    body: { details: [{ field: '/new_disks/0/type' }] },
  })
  expect(await refused([{ size: '999999TiB' }])).toMatchObject({
    status: 400,
    body: { details: [{ field: '/new_disks/0/size' }] },
  })
  await succeeded(await service.ok('diskDelete', { params: { disk_id: taken } }))
})

test('a cost estimate covers the template and its new disks', async () => {
  const { id } = await create({ name: freshName('trainer'), ...members, new_disks: [{ size: '100GiB' }] })
  const vm = { name: freshName('vm'), instance_template_id: id }
  const { items } = await service.ok('estimateCreate', { body: { vm } })
  expect(items.map(({ product_name, quantity }) => [product_name, quantity])).toEqual([
    ['a100.1x', 1],
    ['persistent-ssd', 100],
  ])
})
