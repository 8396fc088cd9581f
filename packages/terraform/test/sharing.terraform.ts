import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { vm } from './support/blocks.ts'
import { type FaultyProxy, startProxy } from './support/proxy.ts'
import { buildProvider, missingTerraform, Workspace } from './support/terraform.ts'

const disk = `
  resource "slipway_disk" "it" {
    name     = "data"
    size     = "10GiB"
    location = "us-east1-a"
  }`
const snapshot = (name: string, more = '') => `
  resource "slipway_snapshot" "${name}" {
    name    = "${name}"
    disk_id = slipway_disk.it.id
    ${more}
  }
`

describe.skipIf(missingTerraform)(
  `resources that use the same resource (${missingTerraform || 'real Terraform'})`,
  () => {
    let service: TestService
    let proxy: FaultyProxy
    let workspace: Workspace

    beforeAll(async () => {
      await buildProvider()
      service = await startService()
      proxy = await startProxy(service.url)
    })
    beforeEach(() => {
      proxy.fault = () => undefined
      workspace = new Workspace({ url: proxy.url, credentials: service.credentials })
    })
    afterEach(async () => {
      workspace.close()
      await resourcesOf(service).clear()
    })
    afterAll(async () => {
      await proxy.close()
      await service.close()
    })

    test('resources that copy or attach the same disk wait for each other', async () => {
      workspace.write(
        disk + snapshot('first') + snapshot('second') + vm({ disks: '[{ disk_id = slipway_disk.it.id }]' }),
      )
      await workspace.apply()
      expect(await workspace.changes()).toEqual({})
      await workspace.destroy()
    })

    test('waiting for another operation ends at the timeout, and the error says what the apply waited for', async () => {
      workspace.write(disk)
      await workspace.apply()
      const disk_id = (await workspace.state('slipway_disk.it'))!.id as string
      await service.simulator().addFault({ method: 'capture', kind: 'fail', times: 10_000 })
      const { operation } = await service.ok('snapshotCreate', { body: { name: 'first', disk_id } })
      workspace.write(disk + snapshot('second', 'timeouts = { create = "2s" }'))
      const { code, text } = await workspace.run('apply', '-auto-approve')
      await service.simulator().clearFaults()
      expect(code).toBe(1)
      expect(text).toContain('The source is being copied: the snapshot first is being created.')
      expect(text).toContain('The provider stopped waiting after 2s (timeouts.create). [conflict]')
      await service.ended(operation.operation_id)
      await workspace.apply()
      expect((await service.ok('snapshotList')).items).toHaveLength(2)
    })

    test('an apply that is interrupted while it waits for another operation creates nothing', async () => {
      workspace.write(disk)
      await workspace.apply()
      const disk_id = (await workspace.state('slipway_disk.it'))!.id as string
      await service.simulator().addFault({ method: 'capture', kind: 'fail', times: 10_000 })
      const { operation } = await service.ok('snapshotCreate', { body: { name: 'first', disk_id } })
      let isWaiting = false
      proxy.fault = (method, path) => {
        if (method === 'GET' && path.includes(`${operation.operation_id}?wait=`)) isWaiting = true
        return undefined
      }
      workspace.write(disk + snapshot('second'))
      const apply = workspace.start('apply', '-auto-approve', '-input=false')
      await expect.poll(() => isWaiting, { timeout: 60_000 }).toBe(true)
      await apply.endGroup('SIGINT')
      const { code, output, errors } = await apply.ended()
      expect(code).toBe(1)
      expect(output + errors).toContain('Interrupted while waiting')
      expect(await workspace.state('slipway_snapshot.second')).toBeUndefined()
      expect((await service.ok('snapshotList')).items).toHaveLength(1)
    })

    test('a name that is taken is reported at once, with the command that imports the resource', async () => {
      workspace.write(disk)
      await workspace.apply()
      let requests = 0
      proxy.fault = (method) => {
        if (method === 'POST') requests += 1
        return undefined
      }
      workspace.write(disk + disk.replace('"it"', '"again"'))
      const { code, text } = await workspace.run('apply', '-auto-approve')
      expect(code).toBe(1)
      expect(text).toContain('[already_exists]')
      expect(text).toContain('terraform import slipway_disk.<name> <id>')
      expect(requests).toBe(1)
    })

    test('a reserved address is assigned, moved to another VM and unassigned in place', async () => {
      const addresses = ['first', 'second'].map(
        (name) => `resource "slipway_address" "${name}" {\n name = "${name}"\n location = "us-east1-a"\n}\n`,
      )
      const configuration = (one: string, two: string) =>
        [
          ...addresses,
          vm({ public_address_id: one }),
          vm({ name: '"train-8"', public_address_id: two }).replace('"it"', '"other"'),
        ].join('')
      const addressOf = async (name: string) => {
        const { items } = await service.ok('addressList')
        const { vm_id } = items.find((address) => address.name === name)!
        return (await service.ok('vmList')).items.find(({ id }) => id === vm_id)?.name
      }
      workspace.write(configuration('slipway_address.first.id', 'null'))
      await workspace.apply()
      expect(await workspace.changes()).toEqual({})
      for (const [one, two] of [
        ['slipway_address.second.id', 'null'],
        ['null', 'slipway_address.second.id'],
        ['null', 'null'],
      ] as const) {
        workspace.write(configuration(one, two))
        const changes = Object.values(await workspace.changes())
        expect(new Set(changes)).toEqual(new Set(['update']))
        await workspace.ok('apply', 'plan')
        expect(await workspace.changes()).toEqual({})
        expect(await addressOf('first')).toBeUndefined()
        const holder = one !== 'null' ? 'train-7' : two !== 'null' ? 'train-8' : undefined
        expect(await addressOf('second')).toBe(holder)
      }
      // An address that was assigned without Terraform stays assigned. `destroy` works whether it deletes the
      // address before or after the VM.
      const { items } = await service.ok('addressList')
      const params = { address_id: items[0]!.id }
      const { operation } = await service.ok('addressAssign', {
        params,
        body: { vm_id: (await workspace.state('slipway_vm.it'))!.id as string },
      })
      await service.ended(operation.operation_id)
      expect(await workspace.changes()).toEqual({})
      await workspace.destroy()
    })
  },
)
