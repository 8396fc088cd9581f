import type { hostMetrics } from '@slipway/contract'
import type { CompiledRule } from '../domain/firewall.ts'
import type { HostKey } from '../domain/guest/host-key.ts'
import type { Rendezvous } from '../domain/guest/rendezvous.ts'
import type { GuestReport } from '../domain/guest/report.ts'

/**
 * The interface to the software that runs the VMs. Every method is idempotent (keyed by our ids), can be
 * cancelled, and can be called again after any failure. A mutating call carries its resource's generation. An
 * engine remembers the highest generation of each resource, until at least a day after the resource was
 * removed, and rejects calls with an older generation with `EngineError('stale')`. So a worker that was
 * paused until its lease expired cannot recreate a deleted VM.
 */
export interface Engine {
  /**
   * Reports every host with its GPUs, VMs and disks. A fleet can be too large to report all of this each
   * time. For a host that `isDetailed` excludes, an engine may report only its existence and hardware
   * (`isSummary`). With `mayBeBrief`, an engine may report all hosts like this if nothing that it leaves out
   * has changed since its last report.
   */
  inventory(
    signal: AbortSignal,
    isDetailed?: (host: string) => boolean,
    mayBeBrief?: boolean,
  ): AsyncIterable<HostReport>

  /**
   * Creates the VM with its OS disk and attached disks. If the VM exists and is off, changes its definition
   * to this spec. Then applies the firewall, begins to start the VM if `power` is on, and returns the result
   * of an inspection. A VM that is not off keeps its definition and power state. A newer firewall is kept.
   * The OS disk is created only for a new VM. If an existing VM has none, this throws `EngineError('lost')`
   * and creates nothing.
   */
  ensureVm(spec: VmSpec, wanted: WantedState, call: Call): Promise<VmStatus | null>
  /**
   * Begins the change and returns; `inspectVm` shows when it is done. `shutdown` asks the guest to shut down,
   * `off` cuts the power.
   */
  powerVm(vm: VmRef, action: PowerAction, call: Call): Promise<void>
  /** Removes the VM with its OS and scratch disks, and keeps attached data disks. The engine resets its GPUs. */
  removeVm(vm: VmRef, call: Call): Promise<void>
  /** Returns null if the host does not have the VM or its OS disk. */
  inspectVm(vm: VmRef, signal: AbortSignal): Promise<VmStatus | null>

  /**
   * Prevents other users of the engine from placing guests on a host, or allows it again. Called only for
   * hosts that report `isCordoned`.
   */
  cordonHost(name: string, isCordoned: boolean, signal: AbortSignal): Promise<void>

  ensureDisk(disk: DiskSpec, call: Call): Promise<void>
  growDisk(disk: DiskSpec, call: Call): Promise<void>
  removeDisk(disk: DiskRef, call: Call): Promise<void>
  inspectDisk(disk: DiskRef, signal: AbortSignal): Promise<DiskStatus | null>
  /**
   * Hot-plugs the disk if the VM is running; otherwise the disk is attached at the next start. The generation
   * is the VM's.
   */
  attachDisk(vm: VmRef, disk: AttachedDisk, call: Call): Promise<void>
  detachDisk(vm: VmRef, disk: DiskRef, call: Call): Promise<void>

  /**
   * Replaces the public address of a VM that is on or off; '' removes it. When this returns, the previous
   * address no longer reaches the VM. The generation is the VM's.
   */
  setPublicAddress(vm: VmRef, address: string, call: Call): Promise<void>

  /**
   * Begins to copy a disk, in its state at the first call, and returns; `inspectCapture` shows when the copy
   * is complete. From then on, the copy does not need its source. If the guest of a running VM has an agent,
   * the guest's file systems are frozen while the copy begins, and are always thawed afterwards. Throws
   * `unfrozen` if freezing is required but not possible. A repeated call during the copy changes nothing.
   * Throws `rejected` if the copy can no longer be completed.
   */
  capture(capture: CaptureSpec, call: Call): Promise<void>
  /** Removes a copy, complete or not. VMs that were created from it keep working. */
  removeCapture(capture: CaptureRef, call: Call): Promise<void>
  inspectCapture(capture: CaptureRef, signal: AbortSignal): Promise<CaptureStatus | null>

  /**
   * When this returns, the rules apply, including to open connections. The generation is the firewall's,
   * counted per VM.
   */
  applyFirewall(vm: VmRef, rules: CompiledRule[], call: Call): Promise<void>
  /** `offset` is in bytes; without it, the last 64 KiB are returned. */
  serialLog(
    vm: VmRef,
    offset: number | undefined,
    signal: AbortSignal,
  ): Promise<{ content: string; nextOffset: number }>
  /**
   * Measures every running VM. Called once a minute. Values that cannot be measured at the moment are
   * omitted, and nothing that a guest does makes this fail.
   */
  sample(signal: AbortSignal): AsyncIterable<VmSample>
  /**
   * Connects to the guest's serial console for writing. The caller ensures that there is only one connection
   * at a time. The guest's output is in the serial log, with or without a connection. Throws
   * `EngineError('rejected')` if the VM must be restarted before its console can be opened.
   */
  openConsole(vm: VmRef, signal: AbortSignal): Promise<EngineConsole>
  /**
   * Calls `onChange` for each VM whose state has changed unexpectedly or has finished changing. The call is
   * only a hint: nothing depends on it. Returns a function that stops the calls.
   */
  watch(onChange: (vmId: string) => void): () => void
}

export interface VmSample {
  vmId: string
  /** Values measured outside the guest, by their names in the contract. Unknown values are omitted. */
  host: Partial<Record<keyof typeof hostMetrics, number>>
  /** Null if the guest has reported nothing since the last sample. */
  guest: GuestReport | null
}

/** An open connection to a guest's serial console. */
export interface EngineConsole {
  /** Returns when more can be written. Rejects if the console has ended. */
  write(input: Buffer): Promise<void>
  close(): void
  /** Resolves when the guest or the engine ends the connection. */
  ended: Promise<void>
  /** Only for engines whose serial log lacks the guest's output while the console is open. */
  onOutput?(listener: (output: Buffer) => void): void
}

export interface Call {
  generation: number
  signal: AbortSignal
}

export interface VmRef {
  id: string
  host: string
}

export interface VmSpec extends VmRef {
  /** The guest's host name. */
  name: string
  projectId: string
  /** True if the VM has never run, so that an OS disk can be created without losing data. */
  isNew: boolean
  type: string
  cpuCores: number
  memoryGb: number
  gpus: { pciAddress: string; model: string }[]
  /** `source` is what was recorded for this engine when the image was imported or captured. */
  image: {
    name: string
    source: Record<string, unknown>
    /** The image was copied from a VM, so a new VM needs its own machine id and only its own SSH keys. */
    isCustom?: true
  }
  osDiskGib: number
  /**
   * The limit of the OS disk in MB/s, for reads and for writes separately. VMs that were defined by earlier
   * versions have no limit.
   */
  osDiskMbps?: number
  /** Size of the sparse local disk whose content is lost when the VM stops; 0 means none. */
  scratchGb: number
  sshPublicKeys: string[]
  /**
   * A guest counts as running only after it has proven this host key. The private key is set only for a new
   * VM; after the first boot, only the guest has it. Null for a VM that generates its own key.
   */
  sshHostKey: HostKey | null
  startupScript: string
  shutdownScript: string
  /** What a member of an instance group learns about the other members when it starts; null for other VMs. */
  group: Rendezvous | null
  network: {
    networkId: string
    macAddress: string
    privateAddress: string
    subnetCidr: string
    gateway: string
    /** '' if the VM has none. */
    publicAddress: string
    /** The limit for each direction. VMs that were defined by earlier versions have no limit. */
    gbps?: number
  }
  disks: AttachedDisk[]
}

export interface WantedState {
  /** The generation is the firewall's, counted per VM. */
  firewall: { rules: CompiledRule[]; generation: number }
  power: 'on' | 'off'
}

export type PowerAction = 'shutdown' | 'off' | 'reset'

export interface DiskRef {
  id: string
  /** The host of a local disk; '' if storage is shared or the disk was never attached. */
  host: string
}

export interface DiskSpec extends DiskRef {
  type: 'persistent-ssd' | 'shared-volume'
  sizeGib: number
  /** 512 or 4096; 0 for a shared volume. */
  blockSize: number
  serialNumber: string
  /** The snapshot that a new disk is filled from, with what was recorded for this engine at its capture. */
  source?: CaptureRef & { source: Record<string, unknown> }
}

export interface CaptureRef {
  id: string
  /** The host that has the copy if storage is local, otherwise ''. */
  host: string
}

export interface CaptureSpec extends CaptureRef {
  kind: 'image' | 'snapshot'
  projectId: string
  sizeGib: number
  /**
   * What is copied: the OS disk of a VM; a data disk, with the VM that can write to it; or an earlier
   * snapshot.
   */
  from:
    | { kind: 'vm'; vm: VmRef }
    | { kind: 'disk'; disk: DiskSpec; vm: VmRef | null }
    | { kind: 'snapshot'; snapshot: CaptureRef & { source: Record<string, unknown> } }
  /** If true, a running VM that cannot be frozen is not copied. */
  mustFreeze: boolean
}

export interface CaptureStatus {
  id: string
  generation: number
  /** Null while the copy is incomplete. */
  result: {
    /** How much storage the copy uses. */
    storedBytes: number
    consistency: 'off' | 'frozen' | 'crash'
    /** What the engine needs in order to use the copy. */
    source: Record<string, unknown>
  } | null
}

export interface AttachedDisk extends DiskSpec {
  mode: 'read-write' | 'read-only'
  /**
   * The limit in MB/s, for reads and for writes separately. Without a limit, only the storage limits the
   * speed.
   */
  mbps?: number | null
}

export interface VmStatus {
  id: string
  generation: number
  /**
   * `booting` until the guest's SSH server responds with the VM's host key, if the engine can check this;
   * `stopping` during a shutdown.
   */
  power: 'off' | 'booting' | 'running' | 'stopping' | 'crashed'
  /** `user@address` or `user@address:port`; '' until known, and for a VM without a public address. */
  sshDestination: string
  /** '' if the VM has none. */
  publicAddress: string
  /** How long to wait before inspecting the VM again, if the engine knows. */
  etaMs?: number
  /** The generation of the rules that apply. If newer rules exist, the reconciler applies them. */
  firewallGeneration: number
  diskIds: string[]
  /** Exit reason and last serial lines, for operators and failure messages. */
  detail?: string
}

export interface DiskStatus {
  id: string
  generation: number
  sizeGib: number
  /** True while the disk is still being filled from its source. */
  isCopying?: true
}

export interface HostReport {
  name: string
  /** True if the host accepts no new VMs, for a reason in `capabilities`. Its current VMs are kept. */
  isClosed?: boolean
  /**
   * True if other users of the engine cannot place guests on the host; undefined if Slipway does not control
   * this.
   */
  isCordoned?: boolean | undefined
  /**
   * True if the engine has found that the host does not respond. The rest of the report is then meaningless.
   */
  isUnreachable?: boolean
  /** True if the report has only the hardware: no VMs, no disks and no GPU holders. */
  isSummary?: boolean
  cpuCores: number
  memoryGb: number
  /** Shown to operators: accelerator, version, and what this engine cannot enforce. */
  capabilities: Record<string, unknown>
  gpus: GpuReport[]
  vms: ReportedVm[]
  disks: DiskStatus[]
  /** Complete and incomplete copies. */
  captures?: Pick<CaptureStatus, 'id' | 'generation'>[]
}

export type ReportedVm = Pick<VmStatus, 'id' | 'generation' | 'power' | 'firewallGeneration'>

export interface GpuReport {
  pciAddress: string
  model: string
  numaNode: number
  iommuGroup: number | null
  /** The VM that has the GPU, according to the engine. */
  holderVmId: string | null
  /** True if the GPU was reset after its last VM released it. */
  isClean: boolean
  /** The result of the host's check of the GPU; undefined if the host cannot check it. */
  check?: GpuCheck
  /** XID errors that the host itself has detected, with their times in ISO 8601. */
  xids?: { xid: number; at: string }[]
}

export interface GpuCheck {
  passed: boolean
  /** Why the check failed, and warnings. */
  reasons: string[]
}

/**
 * `stale`: an older generation, never retried. `missing`: no such VM, disk, host or image. `rejected`: the engine will
 * never do this. `lost`: the VM's OS disk no longer exists. `unfrozen`: the guest of a running VM cannot freeze its file
 * systems. `unavailable`: try again.
 */
export type EngineErrorKind = 'stale' | 'missing' | 'rejected' | 'lost' | 'unfrozen' | 'unavailable'

export class EngineError extends Error {
  readonly kind: EngineErrorKind
  constructor(kind: EngineErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EngineError'
    this.kind = kind
  }
}

/**
 * The inventory cannot be read, but the hosts may still be running: only the engine's control plane is known
 * to have failed. Slipway keeps the last known state of the hosts until `toleranceMs` after the last
 * inventory. Any other inventory error means that the hosts do not respond.
 */
export class EngineUnreadable extends EngineError {
  readonly toleranceMs: number
  constructor(message: string, toleranceMs: number, options?: ErrorOptions) {
    super('unavailable', message, options)
    this.toleranceMs = toleranceMs
  }
}

export const staleCall = (id: string, generation: number, newest: number) =>
  new EngineError('stale', `${id}: generation ${generation} is older than ${newest}`)
export const noSuchVm = (id: string) => new EngineError('missing', `no such VM: ${id}`)
export const noSuchDisk = (id: string) => new EngineError('missing', `no such disk: ${id}`)
export const osDiskLost = (vmId: string) => new EngineError('lost', `the OS disk of ${vmId} no longer exists`)

/** An image that an engine provides. */
export interface EngineImage {
  name: string
  description: string
  tags: string[]
  source: Record<string, unknown>
}

/** Counts the calls of this process to one engine. */
export interface EngineCalls {
  /** The number of calls of each method, and the total duration of those that have ended. */
  byMethod: Map<string, { count: number; seconds: number }>
  failures: Map<EngineErrorKind | 'other', number>
}

/** Engines by location. */
export type Engines = ReadonlyMap<string, Engine>
