import { createHash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { parseCidr } from '@slipway/contract'
import type { CompiledRule } from '../../../domain/firewall.ts'
import type { GpuCheck } from '../../engine.ts'

/**
 * What a member's agent needs to know about a guest, stored as JSON in the configuration of its instance. A
 * change is a write to one instance, which Incus sends only to that instance's member.
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

/** The configuration key of an instance that holds its `GuestNetwork`. */
export const guestNetworkKey = 'user.slipway.guest-network'

/** The configuration key of a member that holds the report of its agent: an `AgentReport` as JSON. */
export const agentKey = 'user.slipway.agent'

export interface AgentReport {
  /** True if the member's kernel filters traffic between guests on the same bridge. */
  filtersInternal: boolean
  /** True if the member's kernel can limit network traffic. Agents of earlier versions do not report it. */
  limitsNetwork?: boolean
  /**
   * The checks of the member's GPUs, by PCI address. A GPU that an instance has is listed only if it fails, so
   * that a passed check was made after the last instance released the GPU. Agents of earlier versions check
   * nothing.
   */
  gpuChecks?: Record<string, GpuCheck>
  /** The version of each `GuestNetwork` that the member's kernel applies, by VM id. */
  applied: Record<string, string>
}

type Config = Record<string, string>

/**
 * Returns null if the instance has no network, or has a network that cannot be applied. The guest's traffic
 * is then dropped.
 */
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

/** Returns a string that begins with the firewall's generation. The rest changes if anything else changes. */
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
