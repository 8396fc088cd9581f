import { expect } from 'vitest'
import { eventually } from './eventually.ts'
import type { TestService } from './service.ts'
import { sshKey } from './ssh-key.ts'

let count = 0
/** Returns a name that is unique in the test file. */
export const freshName = (prefix: string) => `${prefix}-${++count}`

/** Returns the body of a request that creates a VM, with a new name for each call. */
export const vmBody = (changes: Record<string, unknown> = {}) => ({
  name: freshName('vm'),
  type: 'a100.1x',
  location: 'us-east1-a',
  image: 'ubuntu24.04-nvidia:latest',
  ssh_public_key: sshKey,
  ...changes,
})

type OperationResponse = { operation: { operation_id: string; metadata: { id: string } } }

/** Common requests of a tenant, for tests of other features. */
export function resourcesOf(service: TestService) {
  const location = 'us-east1-a'
  const networkId = async () => (await service.ok('networkList')).items[0]!.id
  const ended = ({ operation }: OperationResponse) => service.ended(operation.operation_id)
  const succeeded = async (response: OperationResponse) => {
    const operation = await ended(response)
    expect(operation, JSON.stringify(operation)).toMatchObject({ state: 'SUCCEEDED' })
    return response.operation.metadata.id
  }
  const resources = {
    ended,
    succeeded,
    createVm: (changes = {}) => service.ok('vmCreate', { body: vmBody(changes) }),
    newVm: async (changes = {}) => succeeded(await resources.createVm(changes)),
    act: (vm_id: string, body: unknown) => service.ok('vmUpdate', { params: { vm_id }, body }),
    removeVm: (vm_id: string) => service.ok('vmDelete', { params: { vm_id } }),
    createDisk: (changes = {}) =>
      service.ok('diskCreate', { body: { name: freshName('disk'), size: '10GiB', location, ...changes } }),
    newDisk: async (changes = {}) => succeeded(await resources.createDisk(changes)),
    grow: (disk_id: string, size: string) =>
      service.ok('diskUpdate', { params: { disk_id }, body: { size } }),
    removeDisk: (disk_id: string) => service.ok('diskDelete', { params: { disk_id } }),
    attach: (vm_id: string, disk_id: string, mode = 'read-write') =>
      service.ok('vmAttachDisks', {
        params: { vm_id },
        body: { attach_disks: [{ disk_id, attachment_type: 'data', mode }] },
      }),
    detach: (vm_id: string, disk_id: string) =>
      service.ok('vmDetachDisks', { params: { vm_id }, body: { detach_disks: [disk_id] } }),
    /** Returns a reserved address that no VM has. */
    spareAddress: async () => {
      const spare = (await service.ok('addressList')).items.find(({ vm_id }) => vm_id === '')
      return spare ?? service.ok('addressCreate', { body: { name: freshName('address'), location } })
    },
    assign: (address_id: string, vm_id: string) =>
      service.ok('addressAssign', { params: { address_id }, body: { vm_id } }),
    unassign: (address_id: string) => service.ok('addressUnassign', { params: { address_id } }),
    ruleBody: async (changes = {}) => {
      const id = await networkId()
      return {
        ...{ name: freshName('rule'), vpc_network_id: id, action: 'allow', direction: 'ingress' },
        ...{ protocols: ['tcp'], sources: [{ cidr: '203.0.113.0/24' }], destinations: [{ resource_id: id }] },
        ...{ destination_ports: ['8888'], ...changes },
      }
    },
    createRule: async (changes = {}) =>
      service.ok('firewallRuleCreate', { body: await resources.ruleBody(changes) }),
    newRule: async (changes = {}) => succeeded(await resources.createRule(changes)),
    changeRule: (rule_id: string, body: unknown) =>
      service.ok('firewallRuleUpdate', { params: { rule_id }, body }),
    removeRule: (rule_id: string) => service.ok('firewallRuleDelete', { params: { rule_id } }),
    stateOf: async (vm_id: string) => (await service.ok('vmGet', { params: { vm_id } })).state,
    /** Deletes everything that a test has left behind, so that the next test starts with an empty project. */
    async clear() {
      await service.simulator().clearFaults()
      // A resource that is deleted automatically may no longer exist.
      const remove = async (
        id: 'vmDelete' | 'diskDelete' | 'snapshotDelete' | 'customImageDelete',
        params: Record<string, string>,
      ) => expect([200, 404]).toContain((await service.call(id, { params })).status)
      for (const { id } of (await service.ok('snapshotList')).items)
        await remove('snapshotDelete', { snapshot_id: id })
      for (const { id } of (await service.ok('customImageList')).items)
        await remove('customImageDelete', { custom_image_id: id })
      for (const { id } of (await service.ok('vmList')).items) await remove('vmDelete', { vm_id: id })
      await eventually(async () => (await service.ok('vmList')).items.length === 0)
      for (const { id } of (await service.ok('diskList')).items) await remove('diskDelete', { disk_id: id })
      await eventually(async () => (await service.ok('diskList')).items.length === 0)
    },
  }
  return resources
}
