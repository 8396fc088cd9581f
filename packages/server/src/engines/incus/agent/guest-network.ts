import { createHash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { parseCidr } from '@slipway/contract'
import type { CompiledRule } from '../../../domain/firewall.ts'

/**
 * What the agent of a member needs to know of a guest, as JSON in the configuration of its instance. A change of it is a
 * write to one instance, which Incus sends to the member of that instance and to no other.
 */
export interface GuestNetwork {
  vmId: string
  bridge: string
  /** The VXLAN that connects the bridges of this subnet on all members. */
  vni: number
  subnetCidr: string
  gateway: string
  macAddress: string
  privateAddress: string
  /** '' if the VM has none. */
  publicAddress: string
  firewall: { generation: number; rules: CompiledRule[] }
}

/** The key of an instance with its `GuestNetwork`. */
export const guestNetworkKey = 'user.slipway.guest-network'

/** The key of a member with what its agent reports: an `AgentReport` as JSON. */
export const agentKey = 'user.slipway.agent'

export interface AgentReport {
  /** The kernel of the member filters traffic between guests of one bridge. */
  filtersInternal: boolean
  /** The version of each `GuestNetwork` that the kernel of this member applies; the key is the id of the VM. */
  applied: Record<string, string>
}

type Config = Record<string, string>

/** Null if the instance has none, or none that can be applied: then its traffic is dropped. */
export function guestNetworkOf(config: Config): GuestNetwork | null {
  const guest = parse<GuestNetwork>(config[guestNetworkKey])
  if (!guest || !/^sl[0-9a-f]{11}$/.test(guest.bridge) || !Number.isInteger(guest.vni)) return null
  const addresses = [
    guest.gateway,
    guest.privateAddress,
    ...(guest.publicAddress ? [guest.publicAddress] : []),
  ]
  if (!addresses.every(isIPv4) || !parseCidr(guest.subnetCidr)) return null
  return /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(guest.macAddress) ? guest : null
}

export const agentReportOf = (config: Config): AgentReport | null => parse<AgentReport>(config[agentKey])

/** Begins with the generation of the firewall; the rest differs if anything else does. */
export const versionOf = (guest: GuestNetwork): string =>
  `${guest.firewall.generation}-${createHash('sha256').update(JSON.stringify(guest)).digest('hex').slice(0, 12)}`

export const generationOfVersion = (version: string | undefined): number =>
  Number(version?.split('-')[0] ?? 0)

function parse<T>(text: string | undefined): T | null {
  try {
    return text ? (JSON.parse(text) as T) : null
  } catch {
    return null
  }
}
