import { ownerToken } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { resources } from '../src/resources/index.ts'
import { changedVariables, everything } from './support/everything.ts'
import { buildProvider, missingTerraform, Workspace } from './support/terraform.ts'

/** Resources that the service cannot change: they have no update route. */
const unchangeable = ['slipway_access_key', 'slipway_ssh_key', 'slipway_subnet', 'slipway_instance_template']

describe.skipIf(missingTerraform)(`every resource (${missingTerraform || 'real Terraform'})`, () => {
  let service: TestService
  let workspace: Workspace
  let key: string
  const names = resources.map(({ row }) => `slipway_${row.name}`)

  beforeAll(async () => {
    await buildProvider()
    service = await startService()
    const token = await ownerToken(service)
    key = (await service.ok('organizationKeyCreate', { token, body: { name: 'terraform', role: 'owner' } }))
      .secret
    workspace = new Workspace(service, key)
    workspace.write(everything)
  })
  afterAll(async () => {
    workspace.close()
    await service.close()
  })

  test('the configuration of this suite has every resource', () => {
    const used = [...everything.matchAll(/^resource "(\w+)"/gm)].map(([, name]) => name)
    expect(used.toSorted()).toEqual(names.toSorted())
  })

  test('is created, and the next plan is empty', async () => {
    await workspace.apply()
    expect(await workspace.changes()).toEqual({})
  })

  test('is imported, and the next plan is empty', async () => {
    const other = new Workspace(service, key)
    try {
      const ids = await Promise.all(
        names.map(async (name) => [name, (await workspace.state(`${name}.it`))!.id as string] as const),
      )
      const blocks = ids.map(([name, id]) => `import {\n  to = ${name}.it\n  id = "${id}"\n}\n`)
      // Only the provider uses `delete_disks`. The service does not return it, so an import cannot read it.
      other.write(everything.replace(/ +delete_disks.*\n/, '') + blocks.join(''))
      expect(await other.changes()).toEqual({})
      await other.apply()
      expect(await other.changes()).toEqual({})
    } finally {
      other.close()
    }
  })

  test('is changed in place if the service supports this, and the next plan is empty', async () => {
    const before = await workspace.state('slipway_vm.it')
    const changes = await workspace.changes(...changedVariables)
    expect(changes).toEqual(
      Object.fromEntries(
        names.filter((name) => !unchangeable.includes(name)).map((name) => [`${name}.it`, 'update']),
      ),
    )
    await workspace.ok('apply', 'plan')
    expect(await workspace.changes(...changedVariables)).toEqual({})
    const vm = (await workspace.state('slipway_vm.it'))!
    expect(vm).toMatchObject({ id: before!.id, name: 'v2', disks: [], state: 'STATE_RUNNING' })
    expect(
      (await service.ok('vmGet', { params: { vm_id: vm.id as string } })).disks.map(({ name }) => name),
    ).toContain('v-disk-1')
    const { items } = await service.ok('instanceGroupList')
    expect(items).toMatchObject([{ desired_count: 3, labels: { team: 'ml2' } }])
  })

  test('a resource that was deleted outside Terraform is planned for creation', async () => {
    const vm_id = (await workspace.state('slipway_vm.it'))!.id as string
    const key_id = (await workspace.state('slipway_access_key.it'))!.id as string
    const { operation } = await service.ok('vmDelete', { params: { vm_id } })
    await service.ended(operation.operation_id)
    await service.ok('accessKeyDelete', { token: key, params: { key_id } })
    // The disks that were created with the VM still exist. The next VM needs their names, so they are deleted.
    for (const { id, name } of (await service.ok('diskList')).items)
      if (name === 'v-disk-1')
        await service.ended(
          (await service.ok('diskDelete', { params: { disk_id: id } })).operation.operation_id,
        )
    expect(await workspace.changes(...changedVariables)).toEqual({
      'slipway_vm.it': 'create',
      'slipway_access_key.it': 'create',
    })
    await workspace.ok('apply', 'plan')
    expect(await workspace.changes(...changedVariables)).toEqual({})
  })

  test('is destroyed', async () => {
    await workspace.ok('destroy', '-auto-approve', ...changedVariables)
    for (const list of ['vmList', 'instanceGroupList', 'instanceTemplateList', 'webhookList'] as const)
      expect((await service.ok(list, { token: key })).items).toEqual([])
    expect((await service.ok('diskList')).items.map(({ name }) => name)).toEqual(['v2-disk-1'])
    expect((await service.ok('projectList', { token: key })).map(({ name }) => name)).toEqual(['default'])
  })
})
