import type { CompiledRule } from '../../../domain/firewall.ts'

/** One running VM that the forwarder serves. */
export interface ForwardedVm {
  vmId: string
  networkId: string
  macAddress: string
  /** '' if the VM has no public address. The forwarder then listens on no port. */
  publicAddress: string
  /** The address of the guest's card that is connected to the forwarder. */
  accessMac: string
  /** The guest's ports that are open to the outside. */
  ports: number[]
  /** What the guest may reach in addition to public addresses; null if it may reach nothing. */
  egressAllow: string[] | null
  rules: CompiledRule[]
  /** The limit of each direction, for all cards together. A server of an earlier version sends none. */
  networkGbps?: number
}

export interface VmForwards {
  /** The public port of SSH; 0 if no port is available. */
  sshPort: number
  /** Ports that could not be opened, with the reason. */
  failures: string[]
  /** Bytes of the guest's network cards since the forwarder serves the VM; an earlier forwarder does not count them. */
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

/** An incompatible change of the messages needs another number: a forwarder outlives the server that started it. */
export const forwarderSocket = 'forwarder-3.sock'
