import type { CompiledRule } from '../domain/firewall.ts'
import type { HostKey } from '../domain/guest/host-key.ts'

/**
 * The one door to whatever runs the VMs. Every method is idempotent (keyed by our ids) and cancellable, and may be
 * called again after any failure. A mutating call carries the generation of its resource: an engine remembers the
 * highest one it saw per id (removal included, for at least a day) and refuses an older one with `EngineError('stale')`,
 * so that a worker that slept past its lease cannot raise a deleted VM from the dead.
 */
export interface Engine {
  /**
   * Every host with its GPUs and everything on it that carries our mark. A fleet can be too large to tell all of that each
   * time: of a host that is not to be looked at closely, only that it is there and what it is made of may be told.
   */
  inventory(signal: AbortSignal, isClose?: (host: string) => boolean): AsyncIterable<HostReport>

  /**
   * The whole VM in one call: defines it with OS disk and attached disks, or brings one that is off to this spec; puts the
   * firewall in force; then begins its start if it is to be on, and returns what inspection shows. A VM that is not off
   * keeps its definition and its power, and one with a newer firewall keeps that. The OS disk is made for a new VM alone:
   * where another has none, `EngineError('lost')` says so and nothing is made.
   */
  ensureVm(spec: VmSpec, wanted: WantedState, call: Call): Promise<VmStatus | null>
  /** Begins the change and returns; `inspectVm` tells when it is done. `shutdown` asks the guest, `off` pulls the plug. */
  powerVm(vm: VmRef, action: PowerAction, call: Call): Promise<void>
  /** Gone afterwards, with its OS and scratch disk; attached data disks stay. Its GPUs are reset by the engine. */
  removeVm(vm: VmRef, call: Call): Promise<void>
  /** Null when its host has no such VM, or no OS disk of it. */
  inspectVm(vm: VmRef, signal: AbortSignal): Promise<VmStatus | null>

  /** Tells others who place guests on a host to leave it alone, or no longer to. For hosts that report `isCordoned`. */
  cordonHost(name: string, isCordoned: boolean, signal: AbortSignal): Promise<void>

  ensureDisk(disk: DiskSpec, call: Call): Promise<void>
  growDisk(disk: DiskSpec, call: Call): Promise<void>
  removeDisk(disk: DiskRef, call: Call): Promise<void>
  inspectDisk(disk: DiskRef, signal: AbortSignal): Promise<DiskStatus | null>
  /** Hot when the VM runs, else effective at its next start. The generation is the VM's. */
  attachDisk(vm: VmRef, disk: AttachedDisk, call: Call): Promise<void>
  detachDisk(vm: VmRef, disk: DiskRef, call: Call): Promise<void>

  /** In force, for open connections too, when it returns. The generation is the firewall's, counted per VM. */
  applyFirewall(vm: VmRef, rules: CompiledRule[], call: Call): Promise<void>
  /** `offset` in bytes; without it the last 64 KiB. */
  serialLog(
    vm: VmRef,
    offset: number | undefined,
    signal: AbortSignal,
  ): Promise<{ content: string; nextOffset: number }>
  /** Tells of a VM whose state changed by itself or finished changing. A hint: nothing is lost if it never fires. */
  watch(onChange: (vmId: string) => void): () => void
}

export interface Call {
  generation: number
  signal: AbortSignal
}

export interface VmRef {
  id: string
  /** The name of the host it was placed on. */
  host: string
}

export interface VmSpec extends VmRef {
  /** Guest host name. */
  name: string
  projectId: string
  /** It has never run: there is nothing on its OS disk that could be missed. */
  isNew: boolean
  type: string
  cpuCores: number
  memoryGb: number
  gpus: { pciAddress: string; model: string }[]
  /** `source` is what the image's import recorded for this engine. */
  image: { name: string; source: Record<string, unknown> }
  osDiskGib: number
  /** Sparse local disk, lost at stop; 0 means none. */
  scratchGb: number
  /** Each one line. */
  sshPublicKeys: string[]
  /**
   * What the guest has to prove its name by: it counts as running only if it does. The private half comes with a new VM
   * and is kept by nobody but the guest after its first boot. Null for a VM that makes a key of its own.
   */
  sshHostKey: HostKey | null
  startupScript: string
  shutdownScript: string
  network: {
    networkId: string
    macAddress: string
    privateAddress: string
    subnetCidr: string
    gateway: string
    /** '' when the VM has none. */
    publicAddress: string
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
  /** Where a local disk lives; '' when storage is shared or the disk was never attached. */
  host: string
}

export interface DiskSpec extends DiskRef {
  type: 'persistent-ssd' | 'shared-volume'
  sizeGib: number
  /** 512 or 4096; 0 for a shared volume. */
  blockSize: number
  serialNumber: string
}

export interface AttachedDisk extends DiskSpec {
  mode: 'read-write' | 'read-only'
}

export interface VmStatus {
  id: string
  generation: number
  /** `booting` until the guest answers SSH, with its host key, where the engine can tell; `stopping` while the guest shuts down. */
  power: 'off' | 'booting' | 'running' | 'stopping' | 'crashed'
  /** `user@address` or `user@address:port`; '' until known or when the VM has no public address. */
  sshDestination: string
  /** When to look again, if the engine knows. */
  etaMs?: number
  /** Of the firewall in force: one that the engine forgot is applied again. */
  firewallGeneration: number
  /** The data disks that it has: attachment and detachment are checked by it. */
  diskIds: string[]
  /** For operators and failure messages: exit reason, last serial lines. */
  detail?: string
}

export interface DiskStatus {
  id: string
  generation: number
  sizeGib: number
}

export interface HostReport {
  name: string
  /** It takes no new VMs, for a reason among its capabilities; what it has stays. */
  isClosed?: boolean
  /** Whether others who place guests on it were told to leave it alone; undefined where that is not ours to say. */
  isCordoned?: boolean | undefined
  /** The engine knows that it does not answer: nothing else of the report counts, least of all what it lacks. */
  isAway?: boolean
  /** It was not looked at closely: its VMs, its disks and who holds its GPUs are not told. */
  isBrief?: boolean
  cpuCores: number
  memoryGb: number
  /** Shown to operators: accelerator, version, what this engine cannot enforce. */
  capabilities: Record<string, unknown>
  gpus: GpuReport[]
  vms: ReportedVm[]
  disks: DiskStatus[]
}

/** What a report tells of each of many VMs. */
export type ReportedVm = Pick<VmStatus, 'id' | 'generation' | 'power' | 'firewallGeneration'>

export interface GpuReport {
  pciAddress: string
  model: string
  numaNode: number
  iommuGroup: number | null
  /** The VM that the engine sees holding it. */
  holderVmId: string | null
  /** Reset since its last holder left. */
  isClean: boolean
}

/**
 * `stale`: an older generation, never to be retried. `missing`: no such VM, disk, host or image. `rejected`: the
 * engine will never do this. `lost`: the VM's OS disk is gone for good. `unavailable`: try again.
 */
export type EngineErrorKind = 'stale' | 'missing' | 'rejected' | 'lost' | 'unavailable'

export class EngineError extends Error {
  readonly kind: EngineErrorKind
  constructor(kind: EngineErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EngineError'
    this.kind = kind
  }
}

/** What an engine has on its shelf. */
export interface EngineImage {
  name: string
  description: string
  tags: string[]
  source: Record<string, unknown>
}

/** The engine of each location. */
export type Engines = ReadonlyMap<string, Engine>
