import type { Architecture } from './architecture.ts'
import type { CaptureFiles } from './captures/capture-files.ts'
import type { DiskFiles } from './disks/disk-files.ts'
import type { Fences } from './fences.ts'
import type { ForwarderClient } from './forwarder/client.ts'
import type { GpuOption, HostGpus } from './gpu/gpus.ts'
import type { Locks } from './lock.ts'
import type { StatePaths } from './paths.ts'
import type { AcceleratorVerdict } from './process/accelerator.ts'
import type { Firmware } from './process/firmware.ts'
import type { Isolation } from './process/isolation.ts'
import type { VmRecords } from './vm-records.ts'

export interface QemuEngineOptions {
  dataDir: string
  location: string
  /** The fraction of the cores and memory of its VM type that a guest actually gets. */
  scale: number
  addressRange: string
  egress: 'none' | 'user'
  /** Ranges that guests may reach in addition to public addresses. */
  egressAllow: string[]
  gpus: GpuOption
  bootTimeoutS: number
  log: EngineLog
  /** Receives progress messages while the mini guest is built; by default, they are logged. */
  progress?: (message: string) => void
  /** Path of the bundled `forwarder/main.ts`; by default next to the server's bundle. */
  forwarderProgram?: string
  qemuProgram?: string
  sysfsRoot?: string
  /** How long a guest may take to shut down before its power is cut. */
  shutdownLimitMs?: number
  qmpTimeoutMs?: number
}

interface EngineLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
}

export interface QemuContext {
  options: Required<QemuEngineOptions>
  hostName: string
  arch: Architecture
  qemuVersion: string
  verdict: AcceleratorVerdict
  translationCacheMib: number
  firmware: Firmware | null
  isolation: Isolation
  paths: StatePaths
  locks: Locks
  fences: Fences
  records: VmRecords
  disks: DiskFiles
  captures: CaptureFiles
  gpus: HostGpus
  forwarder: ForwarderClient
}
