import type { Address, Network, Subnet } from '@slipway/contract'
import { gatewayOf } from '../domain/addresses.ts'
import { time } from '../postgres/time.ts'
import type { NetworkRow, SubnetRow } from '../store/network/networks.ts'
import type { AddressRow } from '../store/network/public-addresses.ts'

export const networkView = (n: NetworkRow): Network => ({
  id: n.id,
  name: n.name,
  cidr: n.cidr,
  gateway: gatewayOf(n.cidr),
  subnets: n.subnets,
  labels: n.labels,
  created_at: time(n.created_at),
})

export const subnetView = (s: SubnetRow): Subnet => ({
  id: s.id,
  name: s.name,
  cidr: s.cidr,
  vpc_network_id: s.network_id,
  location: s.location,
  created_at: time(s.created_at),
})

export const addressView = (a: AddressRow): Address => ({
  id: a.id,
  name: a.name,
  address: a.address,
  location: a.location,
  type: 'static',
  vm_id: a.vm_id ?? '',
  labels: a.labels,
  created_at: time(a.created_at),
})
