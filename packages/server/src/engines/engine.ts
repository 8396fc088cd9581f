import type { hostMetrics } from '@slipway/contract'
import type { CompiledRule } from '../domain/firewall.ts'
import type { HostKey } from '../domain/guest/host-key.ts'
import type { Rendezvous } from '../domain/guest/rendezvous.ts'
import type { GuestReport } from '../domain/guest/report.ts'

/**
 * The interface to the software that runs the VMs. Every method is idempotent (keyed by our ids), can be cancelled, and can
 * be called again after any failure. A mutating call carries the generation of its resource: an engine remembers the
 * highest generation of each id (for at least a day after the removal) and rejects an older one with
 * `EngineError('stale')`, so that a worker that paused past its lease cannot recreate a deleted VM.
 */
export interface Engine {
  /**
   * Every host with its GPUs, VMs and disks. A fleet can be too large to report all of that each time: for a host that
   * `isDetailed` excludes, an engine may report only its existence and hardware (`isSummary`). With `mayBeBrief` it may do
   * so for all hosts, if it knows that nothing else has changed since its last report.
   */
  inventory(
    signal: AbortSignal,
    isDetailed?: (host: string) => boolean,
    mayBeBrief?: boolean,
  ): AsyncIterable<HostReport>

  /**
   * The whole VM in one call: creates it with its OS disk and attached disks, or updates a VM that is off to this spec;
   * applies the firewall; then begins the start if `power` is on, and returns what inspection shows. A VM that is not off
   * keeps its definition and its power, and a newer firewall is kept. The OS disk is created only for a new VM: if another
   * VM has none, this throws `EngineError('lost')` and creates nothing.
   */
  ensureVm(spec: VmSpec, wanted: WantedState, call: Call): Promise<VmStatus | null>
  /** Begins the change and returns; `inspectVm` shows when it is done. `shutdown` asks the guest, `off` cuts the power. */
  powerVm(vm: VmRef, action: PowerAction, call: Call): Promise<void>
  /** Removes the VM with its OS and scratch disks, and keeps attached data disks. The engine resets its GPUs. */
  removeVm(vm: VmRef, call: Call): Promise<void>
  /** Null if the host does not have the VM or its OS disk. */
  inspectVm(vm: VmRef, signal: AbortSignal): Promise<VmStatus | null>

  /** Keeps other users of the engine from placing guests on a host, or allows it again. For hosts that report `isCordoned`. */
  cordonHost(name: string, isCordoned: boolean, signal: AbortSignal): Promise<void>

  ensureDisk(disk: DiskSpec, call: Call): Promise<void>
  growDisk(disk: DiskSpec, call: Call): Promise<void>
  removeDisk(disk: DiskRef, call: Call): Promise<void>
  inspectDisk(disk: DiskRef, signal: AbortSignal): Promise<DiskStatus | null>
  /** Hot-plugs if the VM runs, otherwise takes effect at its next start. The generation is the VM's. */
  attachDisk(vm: VmRef, disk: AttachedDisk, call: Call): Promise<void>
  detachDisk(vm: VmRef, disk: DiskRef, call: Call): Promise<void>

  /**
   * Replaces the VM's public address, of a VM that is on or off; '' removes it. When this returns, the address before no
   * longer reaches the VM. The generation is the VM's.
   */
  setPublicAddress(vm: VmRef, address: string, call: Call): Promise<void>

  /**
   * Begins to copy a disk, as it is at the first call, and returns; `inspectCapture` shows when the copy is complete. The
   * copy needs its source no longer then. The file systems of a running VM are frozen for the moment in which the copy
   * begins, if its guest has an agent, and thawed whatever happens. Throws `unfrozen` if that is required and impossible. A
   * call during the copy changes nothing. If the copy cannot be completed any more, this throws `rejected`.
   */
  capture(capture: CaptureSpec, call: Call): Promise<void>
  /** Removes a copy, also an incomplete one. VMs that were created from it keep working. */
  removeCapture(capture: CaptureRef, call: Call): Promise<void>
  inspectCapture(capture: CaptureRef, signal: AbortSignal): Promise<CaptureStatus | null>

  /** The rules apply when this returns, also to open connections. The generation is the firewall's, counted per VM. */
  applyFirewall(vm: VmRef, rules: CompiledRule[], call: Call): Promise<void>
  /** `offset` is in bytes; without it, the last 64 KiB are returned. */
  serialLog(
    vm: VmRef,
    offset: number | undefined,
    signal: AbortSignal,
  ): Promise<{ content: string; nextOffset: number }>
  /**
   * Measures every running VM once. It is called once a minute, and leaves out what cannot be measured at the moment. It never
   * fails because of what a guest does.
   */
  sample(signal: AbortSignal): AsyncIterable<VmSample>
  /**
   * Connects to the guest's serial console, to write to it. The caller makes sure that there is one at a time. What the
   * guest prints is in the serial log, with and without a connection. A VM whose console cannot be opened until it is
   * restarted throws `EngineError('rejected')`.
   */
  openConsole(vm: VmRef, signal: AbortSignal): Promise<EngineConsole>
  /** Reports a VM after its state changed by itself or finished changing. This is only a hint: nothing depends on it. */
  watch(onChange: (vmId: string) => void): () => void
}

export interface VmSample {
  vmId: string
  /** What is measured outside the guest, by the names of the contract; a missing value is not known. */
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
  /** Only for an engine whose serial log lacks what the guest prints while the console is open. */
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
  /** Guest host name. */
  name: string
  projectId: string
  /** True if the VM has never run, so that an OS disk can be created without losing data. */
  isNew: boolean
  type: string
  cpuCores: number
  memoryGb: number
  gpus: { pciAddress: string; model: string }[]
  /** `source` is what the image's import, or the end of its capture, recorded for this engine. */
  image: {
    name: string
    source: Record<string, unknown>
    /** It was copied from a VM: a new VM needs a machine id of its own, and only its own SSH keys. */
    isCustom?: true
  }
  osDiskGib: number
  /** The limit of reads and of writes of the OS disk, in MB/s. A VM that was defined by an earlier version has none. */
  osDiskMbps?: number
  /** Size of the sparse local disk that is lost at stop; 0 means none. */
  scratchGb: number
  sshPublicKeys: string[]
  /**
   * A guest counts as running only after it has proven this host key. The private key comes only with a new VM, and only
   * the guest keeps it after the first boot. Null for a VM that generates its own key.
   */
  sshHostKey: HostKey | null
  startupScript: string
  shutdownScript: string
  /** What a member of an instance group knows about the others at its start; null for other VMs. */
  group: Rendezvous | null
  network: {
    networkId: string
    macAddress: string
    privateAddress: string
    subnetCidr: string
    gateway: string
    /** '' if the VM has none. */
    publicAddress: string
    /** The limit of each direction. A VM that was defined by an earlier version has none. */
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
  /** The copy whose content a new disk gets: what its capture recorded for this engine. */
  source?: CaptureRef & { source: Record<string, unknown> }
}

export interface CaptureRef {
  id: string
  /** The host that has it where storage is local, otherwise ''. */
  host: string
}

export interface CaptureSpec extends CaptureRef {
  kind: 'image' | 'snapshot'
  projectId: string
  sizeGib: number
  /** What is copied: the OS disk of a VM, a data disk, with the VM that can write to it, or an earlier copy. */
  from:
    | { kind: 'vm'; vm: VmRef }
    | { kind: 'disk'; disk: DiskSpec; vm: VmRef | null }
    | { kind: 'snapshot'; snapshot: CaptureRef & { source: Record<string, unknown> } }
  /** A running VM that cannot be frozen is not copied. */
  mustFreeze: boolean
}

export interface CaptureStatus {
  id: string
  generation: number
  /** Null while the copy is incomplete. */
  result: {
    /** How much storage the copy takes. */
    storedBytes: number
    consistency: 'off' | 'frozen' | 'crash'
    /** What the engine needs to know in order to use the copy. */
    source: Record<string, unknown>
  } | null
}

export interface AttachedDisk extends DiskSpec {
  mode: 'read-write' | 'read-only'
  /** The limit of reads and of writes, in MB/s. Without one, only the storage limits it. */
  mbps?: number | null
}

export interface VmStatus {
  id: string
  generation: number
  /** `booting` until the guest answers SSH with its host key, if the engine can check; `stopping` during a shutdown. */
  power: 'off' | 'booting' | 'running' | 'stopping' | 'crashed'
  /** `user@address` or `user@address:port`; '' until known, and for a VM without a public address. */
  sshDestination: string
  /** '' if the VM has none. */
  publicAddress: string
  /** When to inspect again, if the engine knows. */
  etaMs?: number
  /** Generation of the rules that apply; the reconciler applies newer ones again. */
  firewallGeneration: number
  diskIds: string[]
  /** Exit reason and last serial lines, for operators and failure messages. */
  detail?: string
}

export interface DiskStatus {
  id: string
  generation: number
  sizeGib: number
  /** The content of its source is not complete yet. */
  isCopying?: true
}

export interface HostReport {
  name: string
  /** True if the host accepts no new VMs, for a reason in `capabilities`. Its current VMs are kept. */
  isClosed?: boolean
  /** True if other users cannot place guests on the host; undefined if Slipway does not control that. */
  isCordoned?: boolean | undefined
  /** True if the engine has found that the host does not respond. Nothing else in the report is then valid. */
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
  /** What the host finds when it examines the GPU. Undefined if it cannot examine it. */
  check?: GpuCheck
  /** Errors that the host itself has seen, with their times in ISO 8601. */
  xids?: { xid: number; at: string }[]
}

export interface GpuCheck {
  passed: boolean
  /** Why it failed, and warnings. */
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
 * The inventory cannot be read, but the control plane of this engine can fail without its hosts. Its hosts keep their state
 * for at most `toleranceMs` after the last inventory. Any other failure of an inventory means that its hosts are silent.
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

/** An image as an engine offers it. */
export interface EngineImage {
  name: string
  description: string
  tags: string[]
  source: Record<string, unknown>
}

/** Counts the calls of this process to one engine. */
export interface EngineCalls {
  /** How often each method was called, and how long the calls that ended took. */
  byMethod: Map<string, { count: number; seconds: number }>
  failures: Map<EngineErrorKind | 'other', number>
}

/** Engines by location. */
export type Engines = ReadonlyMap<string, Engine>
