import { cidrContains } from '@slipway/contract/cidr'
import type { Vm } from '@slipway/sdk'

/** Simulated VMs have public addresses from this block, which the internet does not route. */
const simulatedBlock = '198.18.0.0/15'

export const publicAddressOf = (vm: Vm): string => vm.network_interfaces[0]?.ips[0]?.public_ipv4.address ?? ''

export const isSimulatedAddress = (address: string): boolean => cidrContains(simulatedBlock, address)

/** Returns the reserved address of a VM, which the project keeps when the VM is deleted; '' if the VM has none. */
export function reservedAddressOf(vm: Vm): string {
  const address = vm.network_interfaces[0]?.ips[0]?.public_ipv4
  return address?.type === 'static' ? address.address : ''
}
