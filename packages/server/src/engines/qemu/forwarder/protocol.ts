import type { CompiledRule } from '../../../domain/firewall.ts'

/** One running VM that the forwarder serves. */
export interface ForwardedVm {
  vmId: string
  networkId: string
  macAddress: string
  /** '' if the VM has no public address. The forwarder then listens on no port. */
  publicAddress: string
  /** The MAC address of the guest's interface on the access network. */
  accessMac: string
  /** The guest's ports that are open to the outside. */
  ports: number[]
  /**
   * Ranges that the guest may reach in addition to public addresses; null if it may not connect to anything.
   */
  egressAllow: string[] | null
  rules: CompiledRule[]
  /**
   * The limit for each direction, shared by all network interfaces of the VM. Servers of earlier versions do
   * not send it.
   */
  networkGbps?: number
}

export interface VmForwards {
  /** The public port for SSH; 0 if no port is available. */
  sshPort: number
  /** Ports that could not be opened, with the reason. */
  failures: string[]
  /**
   * Bytes through the guest's network interfaces since the forwarder started serving the VM. Forwarders of
   * earlier versions do not count them.
   */
  receivedBytes?: number
  sentBytes?: number
}

export type ForwarderRequest =
  | { op: 'set'; vm: ForwardedVm }
  | { op: 'remove'; vmId: string }
  | { op: 'greeting'; vmId: string; timeoutMs: number; hostKey: string }
  | { op: 'status' }

export interface ForwarderStatus {
  vms: Record<string, VmForwards>
}

/** Messages are lines of JSON on the control socket. */
export type ForwarderMessage = { id: number } & ForwarderRequest
export type ForwarderResponse = { id: number } & ({ result: unknown } | { error: string })

/**
 * Increment the number in the name when messages change incompatibly: a forwarder outlives the server that
 * started it.
 */
export const forwarderSocket = 'forwarder-3.sock'
