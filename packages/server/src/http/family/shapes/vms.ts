import type { Vm } from '@slipway/contract'
import { attachedDiskShape } from './disks.ts'
import { inSeconds } from './time.ts'

type Interface = Vm['network_interfaces'][number]

export const vmShape = (vm: Vm) => ({
  ...vm,
  created_at: inSeconds(vm.created_at),
  updated_at: inSeconds(vm.updated_at),
  commitment_end: inSeconds(vm.commitment_end),
  disks: vm.disks.map(attachedDiskShape),
  network_interfaces: vm.network_interfaces.map(interfaceShape),
  host_channel_adapters: [],
  nvlink_domain_id: '',
  pod_id: '',
  maintenance_policy: '',
})

const interfaceShape = (given: Interface) => ({
  ...given,
  interface_type: given.interface_type.toLowerCase(),
  external_dns_name: '',
  ips: given.ips.map(addressesShape),
})

/**
 * Clients read both members without checking that they exist, and expect a type even if there is no address.
 */
const addressesShape = ({ private_ipv4, public_ipv4 }: Interface['ips'][number]) => ({
  private_ipv4: { address: private_ipv4?.address ?? '' },
  public_ipv4: public_ipv4?.type ? public_ipv4 : { id: '', address: '', type: 'none' },
})
