import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { vmTypes } from '@slipway/contract'
import { expect, test } from 'vitest'
import { HostGpus } from '../../src/engines/qemu/gpu/gpus.ts'
import { mmioWindowGib, vfioArguments } from '../../src/engines/qemu/gpu/vfio.ts'
import { hostCapacity } from '../../src/engines/qemu/host-report.ts'
import { scanGpus } from '../../src/engines/sysfs-gpus.ts'
import { layOutSysfs } from '../support/sysfs-fixture.ts'

const GIB = 1024 ** 3

test('the sysfs scan finds eight A100s on two NUMA nodes, all usable by a guest', async () => {
  const gpus = await scanGpus(await layOutSysfs('a100-80gb-8x-two-nodes'))
  expect(gpus).toHaveLength(8)
  expect(gpus.every((gpu) => gpu.model === 'A100 80GB PCIe' && gpu.problem === '' && gpu.canReset)).toBe(true)
  expect(gpus.map((gpu) => gpu.numaNode)).toEqual([0, 0, 0, 0, 1, 1, 1, 1])
  expect(new Set(gpus.map((gpu) => gpu.iommuGroup)).size).toBe(8)
  expect(gpus[0]!.barBytes).toBe(128 * GIB + 16 * 1024 ** 2 + 32 * 1024 ** 2)
})

test('the sysfs scan reads the recorded tree of an H200, which cannot be passed through', async () => {
  const gpus = await scanGpus(await layOutSysfs('h200-in-a-guest'))
  expect(gpus).toMatchObject([
    { pciAddress: '0000:00:06.0', model: 'PCI 10de:2335', numaNode: 0, iommuGroup: null, canReset: true },
  ])
  expect(gpus[0]!.barBytes).toBeGreaterThan(256 * GIB)
  expect(gpus[0]!.problem).toContain('no IOMMU group')
})

test('the sysfs scan reports which driver blocks a GPU', async () => {
  const { usable, unusable } = await new HostGpus([], await layOutSysfs('missing-driver')).list()
  expect(usable.map((gpu) => gpu.pciAddress)).toEqual(['0000:04:00.0'])
  expect(usable[0]!.canReset).toBe(false)
  expect(unusable).toEqual([
    { pci: '0000:01:00.0', reason: 'bound to no driver, not to vfio-pci' },
    { pci: '0000:02:00.0', reason: 'bound to nouveau, not to vfio-pci' },
    { pci: '0000:03:00.0', reason: expect.stringContaining('no IOMMU group') },
  ])
})

test('a GPU whose configuration space reads ffff fails its check, and a narrow link is a warning', async () => {
  const root = await layOutSysfs('a100-80gb-8x-two-nodes')
  const [lost, narrow, sound] = (await scanGpus(root)).map(({ pciAddress }) => pciAddress)
  const file = (gpu: string, name: string) => join(root, 'bus/pci/devices', gpu, name)
  await writeFile(file(lost!, 'config'), Buffer.alloc(64, 0xff))
  await writeFile(file(sound!, 'config'), Buffer.from([0xde, 0x10, 0xb5, 0x20]))
  await writeFile(file(narrow!, 'current_link_width'), '8\n')
  await writeFile(file(narrow!, 'max_link_width'), '16\n')
  const checks = new Map((await scanGpus(root)).map(({ pciAddress, check }) => [pciAddress, check]))
  expect(checks.get(lost!)).toEqual({ passed: false, reasons: [expect.stringContaining('reads ffff')] })
  expect(checks.get(narrow!)).toEqual({ passed: true, reasons: [expect.stringContaining('8 of 16 lanes')] })
  expect(checks.get(sound!)).toEqual({ passed: true, reasons: [] })
})

test('the sysfs scan offers only the listed GPUs, and reports missing ones', async () => {
  const root = await layOutSysfs('a100-80gb-8x-two-nodes')
  const gpus = new HostGpus([{ pci: '0000:31:00.0' }, { pci: '0000:99:00.0' }], root)
  const { usable, unusable } = await gpus.list()
  expect(usable.map((gpu) => gpu.pciAddress)).toEqual(['0000:31:00.0'])
  expect(unusable).toEqual([{ pci: '0000:99:00.0', reason: 'no such NVIDIA GPU in sysfs' }])
})

test('GPUs of one IOMMU group go to one VM together or not at all', async () => {
  const gpus = new HostGpus([], await layOutSysfs('shared-iommu-groups'))
  await expect(gpus.passthrough(['0000:3b:00.0'])).rejects.toMatchObject({ kind: 'rejected' })
  await expect(gpus.passthrough(['0000:3b:00.0', '0000:3c:00.0'])).resolves.toHaveLength(2)
  await expect(gpus.passthrough(['0000:5e:00.0'])).rejects.toThrow(/0000:5f:00.0, bound to nvme/)
  await expect(gpus.passthrough(['0000:77:00.0'])).rejects.toMatchObject({ kind: 'missing' })
})

test('declared GPUs get addresses that no machine has, and are not passed through', async () => {
  const gpus = new HostGpus(
    [
      { model: 'A40 48GB PCIe', count: 2 },
      { model: 'L40S 48GB PCIe', count: 1 },
    ],
    '/none',
  )
  const { usable } = await gpus.list()
  expect(usable.map((gpu) => gpu.model)).toEqual(['A40 48GB PCIe', 'A40 48GB PCIe', 'L40S 48GB PCIe'])
  expect(new Set(usable.map((gpu) => gpu.pciAddress)).size).toBe(3)
  expect(await gpus.passthrough(usable.map((gpu) => gpu.pciAddress))).toEqual([])
})

const a100 = { pciAddress: '0000:17:00.0', barBytes: 128 * GIB, iommuGroup: 1 }

test('GPU passthrough puts each GPU on its own root port', () => {
  const args = vfioArguments([a100, { ...a100, pciAddress: '0000:31:00.0' }], 'x86_64').join(' ')
  expect(args).toContain('pcie-root-port,id=gpu0')
  expect(args).toContain('vfio-pci,host=0000:17:00.0,bus=gpu0')
  expect(args).toContain('vfio-pci,host=0000:31:00.0,bus=gpu1')
})

test('GPU passthrough opens a window above 4 GiB for all BARs, in QEMU and in the firmware', () => {
  const eight = Array.from({ length: 8 }, () => a100)
  expect(mmioWindowGib(eight)).toBe(2048)
  const args = vfioArguments(eight, 'x86_64').join(' ')
  expect(args).toContain('q35-pcihost.pci-hole64-size=2048G')
  expect(args).toContain(`X-PciMmio64Mb,string=${2048 * 1024}`)
})

test('a VM without GPUs gets no passthrough arguments', () => {
  expect(vfioArguments([], 'x86_64')).toEqual([])
})

test.each(vmTypes)('even a small host reports enough cores and memory for $name', (type) => {
  const { cpuCores, memoryGb } = hostCapacity(1_000_000, type.gpuCount)
  expect(cpuCores).toBeGreaterThanOrEqual(type.cpuCores)
  expect(memoryGb).toBeGreaterThanOrEqual(type.memoryGb)
})
