import type { Vm } from '@slipway/sdk'

export const publicAddressOf = (vm: Vm) => vm.network_interfaces[0]?.ips[0]?.public_ipv4

/** Returns the reserved address of a VM, which is kept when the VM is deleted; '' if it has none. */
export function reservedAddressOf(vm: Vm): string {
  const address = publicAddressOf(vm)
  return address?.type === 'static' ? address.address : ''
}
