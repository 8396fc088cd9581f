import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config/index.ts'
import type { VmSpec } from '../../src/engines/engine.ts'
import { definitionOf } from '../../src/engines/incus/definition.ts'
import { gpusOf, numaNodesOfGpus, type Resources } from '../../src/engines/incus/fleet/resources.ts'

/** The response of `GET /1.0/resources` for a host with two sockets of 32 threads, and two GPUs on each. */
const cards = ['0000:17:00.0', '0000:65:00.0', '0000:ca:00.0', '0000:e3:00.0']
const socket = (node: number) => ({
  cores: Array.from({ length: 16 }, () => ({ threads: [{ numa_node: node }, { numa_node: node }] })),
})
const twoNodes: Resources = {
  cpu: { total: 64, sockets: [socket(0), socket(1)] },
  memory: { total: 1024 ** 4 },
  gpu: {
    cards: cards.map((pci_address, index) => ({
      ...{ pci_address, vendor_id: '10de', product_id: '20b5', numa_node: index < 2 ? 0 : 1 },
    })),
  },
  pci: { devices: cards.map((pci_address, index) => ({ pci_address, iommu_group: 20 + index })) },
}

test('a VM gets the cores of the NUMA nodes that have its GPUs', () => {
  expect(numaNodesOfGpus(twoNodes, [cards[3]!], 12)).toEqual([1])
  expect(numaNodesOfGpus(twoNodes, [cards[2]!, cards[0]!], 24)).toEqual([0, 1])
  expect(gpusOf(twoNodes).map(({ numaNode }) => numaNode)).toEqual([0, 0, 1, 1])
  expect(gpusOf(twoNodes).map(({ iommuGroup }) => iommuGroup)).toEqual([20, 21, 22, 23])
})

test('a VM is not pinned if it has more cores than the nodes of its GPUs, or if the host has one node', () => {
  expect(numaNodesOfGpus(twoNodes, [cards[0]!], 33)).toEqual([])
  const oneNode = { ...twoNodes, cpu: { total: 32, sockets: [socket(0)] } }
  expect(numaNodesOfGpus(oneNode, [cards[0]!], 12)).toEqual([])
})

/** Returns the definition of a VM in a location whose guests are virtual machines. */
function definition(numaNodes: number[], changes: Partial<VmSpec> = {}, settings = '') {
  const toml = `[[location]]\nname = "gpu-a"\nengine = "incus"\n[location.incus]\n${settings}`
  const [location] = loadConfig(['--config', 'slipway.toml'], {}, () => toml).locations
  if (location?.engine !== 'incus') throw new Error('the location uses another engine')
  const ctx = { config: location.incus } as Parameters<typeof definitionOf>[0]
  const spec = {
    ...{ id: 'x', name: 'x', projectId: 'p', cpuCores: 12, memoryGb: 120, osDiskGib: 128, disks: [] },
    ...{ gpus: [{ pciAddress: cards[3]!, model: '' }], sshPublicKeys: [], sshHostKey: null },
    ...{ startupScript: '', shutdownScript: '', image: { name: 'guest:latest', source: {} } },
    network: { macAddress: '52:54:00:00:00:01', privateAddress: '172.27.0.9', subnetCidr: '172.27.0.0/20' },
    ...changes,
  } as unknown as VmSpec
  return definitionOf(ctx, spec, 'sw0', 'on', numaNodes, new Map())
}

test('the definition of an instance sets the nodes of its cores, and clears the previous ones', () => {
  const pinned = definition([1])
  expect(pinned.config).toMatchObject({ 'limits.cpu': '12', 'limits.cpu.nodes': '1' })
  expect(pinned.devices.gpu0).toEqual({ type: 'gpu', gputype: 'physical', pci: cards[3] })
  expect(definition([]).config['limits.cpu.nodes']).toBe('')
})

test('the definition of an instance limits its network and its disks, but no shared volume', () => {
  const network = { macAddress: '52:54:00:00:00:01', gbps: 25 } as VmSpec['network']
  const disk = { id: 'd', serialNumber: 'ssd', type: 'persistent-ssd', mode: 'read-write', mbps: 1000 }
  const disks = [disk, { ...disk, serialNumber: 'volume', type: 'shared-volume' }] as VmSpec['disks']
  const changes = { network, disks, osDiskMbps: 500 }
  const { devices } = definition([], changes)
  expect(devices.eth0).toMatchObject({ 'limits.ingress': '25000Mbit', 'limits.egress': '25000Mbit' })
  expect(devices.root).toMatchObject({ 'limits.read': '500MB', 'limits.write': '500MB' })
  expect(devices.ssd).toMatchObject({ 'limits.read': '1000MB', 'limits.write': '1000MB' })
  expect(devices.volume).not.toHaveProperty('limits.read')
  expect(definition([], changes, 'network_limits = false').devices.eth0).not.toHaveProperty('limits.ingress')
})
