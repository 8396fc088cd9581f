import type { GpuCheck } from '../../engine.ts'
import type { SysfsGpu } from '../../sysfs-gpus.ts'

const missing: GpuCheck = { passed: false, reasons: ['The GPU does not respond: it left the PCI bus.'] }

/**
 * Returns the checks that the agent reports. For GPUs that an instance has, only failures are reported: a
 * passed check must be newer than the release of the GPU by its last instance. `held` has the PCI addresses of
 * the GPUs of each instance, separated by spaces.
 */
export function checksOf(
  gpus: Pick<SysfsGpu, 'pciAddress' | 'check'>[],
  held: Iterable<string>,
): Record<string, GpuCheck> {
  const taken = [...held].flatMap((addresses) => addresses.split(' ').filter(Boolean))
  const found = new Map(gpus.map(({ pciAddress, check }) => [pciAddress, check]))
  return Object.fromEntries([
    ...taken.filter((address) => !found.has(address)).map((address) => [address, missing]),
    ...[...found].filter(([address, { passed }]) => !passed || !taken.includes(address)),
  ])
}
