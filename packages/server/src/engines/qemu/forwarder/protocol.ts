import type { CompiledRule } from '../../../domain/firewall.ts'

/** What the forwarder holds for one running VM. */
export interface ForwardedVm {
  vmId: string
  networkId: string
  macAddress: string
  /** '' when the VM has no public address: then nothing is listened on. */
  publicAddress: string
  /** Of the card that the forwarder is at the other end of. */
  accessMac: string
  /** The guest's ports that are listened on. */
  ports: number[]
  /** What the guest may reach beside public addresses; null where it reaches nothing. */
  egressAllow: string[] | null
  rules: CompiledRule[]
}

export interface VmForwards {
  /** The public port of SSH; 0 while none could be had. */
  sshPort: number
  ports: number[]
  /** Ports that could not be listened on, with the reason. */
  failures: string[]
  isOnSegment: boolean
  counters: Counters
}

export interface Counters {
  accepted: number
  denied: number
  cut: number
  bytesIn: number
  bytesOut: number
  byRule: Record<string, number>
}

export type ForwarderRequest =
  | { op: 'set'; vm: ForwardedVm }
  | { op: 'remove'; vmId: string }
  | { op: 'greeting'; vmId: string; timeoutMs: number; hostKey: string }
  | { op: 'status' }

export interface ForwarderStatus {
  pid: number
  vms: Record<string, VmForwards>
}

/** Sent as lines of JSON over the control socket. */
export type ForwarderMessage<T> = { id: number } & T
export type ForwarderAnswer = { id: number } & ({ result: unknown } | { error: string })

/** Its number is raised when what is said over it changes: a forwarder outlives the server that started it. */
export const forwarderSocket = 'forwarder-3.sock'
