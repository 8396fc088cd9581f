import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { vm } from './support/blocks.ts'
import { errorBody, type FaultyProxy, startProxy } from './support/proxy.ts'
import { buildProvider, missingTerraform, Workspace } from './support/terraform.ts'

describe.skipIf(missingTerraform)(`the provider (${missingTerraform || 'real Terraform'})`, () => {
  let service: TestService
  let proxy: FaultyProxy
  let workspace: Workspace
  const vmId = async () => (await workspace.state('slipway_vm.it'))!.id as string

  beforeAll(async () => {
    await buildProvider()
    service = await startService((config) => {
      // VMs in this location boot so slowly that a test can interrupt an apply.
      for (const location of config.locations)
        if (location.name === 'eu-north1-a' && location.engine === 'simulated')
          location.simulated.bootMs = [4000, 4000]
    })
    proxy = await startProxy(service.url)
  })
  beforeEach(() => {
    proxy.fault = () => undefined
    workspace = new Workspace({ url: proxy.url, credentials: service.credentials })
  })
  afterEach(async () => {
    proxy.fault = () => undefined
    workspace.close()
    for (const { id, deletion_protection } of (await service.ok('vmList')).items)
      if (deletion_protection)
        await service.ok('vmUpdate', { params: { vm_id: id }, body: { deletion_protection: false } })
    await resourcesOf(service).clear()
  })
  afterAll(async () => {
    await proxy.close()
    await service.close()
  })

  test('a change of the image or of the GPU family replaces the VM; a change of labels does not', async () => {
    workspace.write(vm())
    await workspace.apply()
    workspace.write(vm({ image: '"ubuntu22.04-nvidia"' }))
    expect(await workspace.changes()).toEqual({ 'slipway_vm.it': 'delete,create' })
    workspace.write(vm({ type: '"a40.1x"' }))
    expect(await workspace.changes()).toEqual({ 'slipway_vm.it': 'delete,create' })
    workspace.write(vm({ labels: '{ team = "ml" }' }))
    expect(await workspace.changes()).toEqual({ 'slipway_vm.it': 'update' })
  })

  test('a change of the type within the family needs allow_stopping', async () => {
    workspace.write(vm())
    await workspace.apply()
    workspace.write(vm({ type: '"a100.2x"' }))
    const { code, text } = await workspace.run('plan')
    expect(code).toBe(1)
    expect(text).toContain('The data on its local scratch disk (960 GB) is lost. Set allow_stopping = true')
    workspace.write(vm({ type: '"a100.2x"', allow_stopping: 'true' }))
    expect(await workspace.changes()).toEqual({ 'slipway_vm.it': 'update' })
  })

  test('a VM that could not be started again after a change is started by the next apply', async () => {
    workspace.write(vm())
    await workspace.apply()
    workspace.write(vm({ type: '"a100.2x"', allow_stopping: 'true' }))
    let patches = 0
    proxy.fault = (method, path) =>
      method === 'PATCH' && path.includes('/vms/') && ++patches === 3
        ? { status: 409, body: errorBody('conflict') }
        : undefined
    expect((await workspace.run('apply', '-auto-approve')).code).toBe(1)
    proxy.fault = () => undefined
    const params = { vm_id: await vmId() }
    expect(await service.ok('vmGet', { params })).toMatchObject({ state: 'STATE_SHUTOFF', type: 'a100.2x' })
    await workspace.apply()
    expect(await service.ok('vmGet', { params })).toMatchObject({ state: 'STATE_RUNNING', type: 'a100.2x' })
    expect(await workspace.changes()).toEqual({})
  })

  test('a change that was made outside Terraform is found and reverted', async () => {
    workspace.write(vm({ labels: '{ team = "ml" }' }))
    await workspace.apply()
    const params = { vm_id: await vmId() }
    await service.ok('vmUpdate', { params, body: { labels: { team: 'sales' }, name: 'other' } })
    expect(await workspace.changes()).toEqual({ 'slipway_vm.it': 'update' })
    await workspace.apply()
    expect(await service.ok('vmGet', { params })).toMatchObject({ name: 'train-7', labels: { team: 'ml' } })
  })

  test.each([
    [401, 'unauthenticated'],
    [403, 'permission_denied'],
    [429, 'rate_limited'],
    [500, 'internal_error'],
    [503, 'unavailable'],
  ])('an error %i while reading stops the plan and keeps the state', async (status, code) => {
    workspace.write(vm())
    await workspace.apply()
    const id = await vmId()
    proxy.fault = (method) => (method === 'GET' ? { status, body: errorBody(code) } : undefined)
    const { code: exitCode, text } = await workspace.run('apply', '-auto-approve')
    expect(exitCode).toBe(1)
    expect(text).toContain(`[${code}]`)
    expect(await vmId()).toBe(id)
  })

  test('an access key that cannot see the project removes nothing from the state', async () => {
    workspace.write(vm())
    await workspace.apply()
    proxy.fault = (method) => (method === 'GET' ? { status: 404, body: errorBody('not_found') } : undefined)
    const { code, text } = await workspace.run('apply', '-refresh-only', '-auto-approve')
    expect(code).toBe(1)
    expect(text).toContain('Nothing was removed from the state')
    expect(await vmId()).not.toBe('')
  })

  test('a creation whose response is lost is not repeated', async () => {
    workspace.write(vm())
    let isLost = false
    proxy.fault = (method) => {
      if (method !== 'POST' || isLost) return undefined
      isLost = true
      return 'lose the response'
    }
    await workspace.apply()
    expect(isLost).toBe(true)
    expect((await service.ok('vmList')).items.map(({ id }) => id)).toEqual([await vmId()])
  })

  test('a plan without a project fails', async () => {
    workspace.env.SLIPWAY_PROJECT_ID = ''
    workspace.write(vm())
    const { code, text } = await workspace.run('plan')
    expect(code).toBe(1)
    expect(text).toContain('Set project_id in the provider block')
  })

  test('an interrupted apply keeps the VM in the state, and the next apply changes nothing', async () => {
    workspace.write(vm({ location: '"eu-north1-a"' }))
    const apply = workspace.start('apply', '-auto-approve', '-input=false')
    await apply.until(/Creating\.\.\./)
    await expect.poll(async () => (await service.ok('vmList')).items.length).toBe(1)
    await apply.endGroup('SIGINT')
    expect((await apply.ended()).output).toContain('Interrupted while waiting')
    const [created] = (await service.ok('vmList')).items
    expect(await vmId()).toBe(created!.id)
    await expect.poll(async () => (await service.ok('vmList')).items[0]!.state).toBe('STATE_RUNNING')
    expect(await workspace.changes()).toEqual({})
  })

  test('a plan that would delete a protected VM fails', async () => {
    workspace.write(vm({ deletion_protection: 'true' }))
    await workspace.apply()
    const replaced = vm({ deletion_protection: 'true', image: '"ubuntu22.04-nvidia"' })
    for (const [configuration, ...args] of [[vm({ deletion_protection: 'true' }), '-destroy'], [replaced]]) {
      workspace.write(configuration!)
      const { code, text } = await workspace.run('plan', ...args)
      expect(code, text).toBe(1)
      expect(text).toContain('Set deletion_protection = false and apply that change first.')
    }
  })

  test('an out-of-stock error names the locations that have stock', async () => {
    const open = (isOpen: boolean) =>
      service.sql(`UPDATE hosts SET is_schedulable = $1 WHERE location = 'us-east1-a'`, [isOpen])
    await open(false)
    workspace.write(vm())
    const { code, text } = await workspace.run('apply', '-auto-approve')
    await open(true)
    expect(code).toBe(1)
    expect(text).toContain('out of stock')
    expect(text).toMatch(/In stock in: .*eu-north1-a/)
    expect(await workspace.state('slipway_vm.it')).toBeUndefined()
  })

  test('terraform validate finds mistakes without a service', async () => {
    workspace.env.SLIPWAY_API_URL = 'http://127.0.0.1:1'
    workspace.write(
      `${vm({ name: '"not a name"', type: '"b200.1x"', ttl_seconds: '5', timeouts: '{ create = "soon" }' })}
      resource "slipway_vm" "incomplete" { name = "incomplete" }
      resource "slipway_firewall_rule" "rule" {
        name           = "rule"
        vpc_network_id = "0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7c01"
        action         = "allow"
        direction      = "ingress"
        protocols      = ["tcp"]
        sources        = [{}]
        destinations   = [{ cidr = "10.0.0.0/8" }]
        destination_ports = ["ssh"]
      }`,
    )
    const { code, text } = await workspace.run('validate')
    expect(code).toBe(1)
    for (const message of [
      '"not a name" has an invalid format',
      '"b200.1x" is not supported. Supported values: a40.1x',
      '5 is too small. The minimum is 300.',
      '"soon" is not a duration',
      'location is missing. It is required unless instance_template_id is set.',
      'Each item must have exactly one of cidr and resource_id.',
      '"ssh" has an invalid format. Expected: a port or a range of ports',
    ])
      expect(text).toContain(message)
  })

  test('an apply fails after the create timeout, and the VM stays in the state', async () => {
    workspace.write(vm({ location: '"eu-north1-a"', timeouts: '{ create = "1s" }' }))
    const { code, text } = await workspace.run('apply', '-auto-approve')
    expect(code).toBe(1)
    expect(text).toContain('did not end within 1s (timeouts.create). The operation continues.')
    expect(await vmId()).toBe((await service.ok('vmList')).items[0]!.id)
  })

  test('a plan accepts values that are known only after the apply', async () => {
    workspace.write(`
      resource "slipway_disk" "data" {
        name     = "data"
        size     = "10GiB"
        location = slipway_vm.first.placed_location
      }
      ${vm().replace('"it"', '"first"').replace('train-7', 'first').replace('"us-east1-a"', '"any"')}
      ${vm({ disks: '[{ disk_id = slipway_disk.data.id, mode = "read-only" }]' })}`)
    await workspace.apply()
    expect(await workspace.changes()).toEqual({})
    const { disks } = await service.ok('vmGet', { params: { vm_id: await vmId() } })
    expect(disks).toMatchObject([{ attachment_type: 'os' }, { name: 'data', mode: 'read-only' }])
  })

  test('plans and other output do not show scripts', async () => {
    const script = '#!/bin/sh\\necho swordfish\\n'
    workspace.write(vm({ startup_script: `"${script}"` }))
    const texts = [await workspace.ok('plan'), await workspace.apply(), await workspace.ok('show')]
    expect(texts.join()).not.toContain('swordfish')
    expect(texts[0]).toContain('(sensitive value)')
  })
})
