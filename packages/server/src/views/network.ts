import type { Network, Subnet } from '@slipway/contract'
import { gatewayOf } from '../domain/addresses.ts'
import { time } from '../postgres/time.ts'
import type { NetworkRow, SubnetRow } from '../store/network/networks.ts'

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
