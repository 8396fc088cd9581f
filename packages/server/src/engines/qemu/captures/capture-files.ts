import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { CaptureSpec, CaptureStatus } from '../../engine.ts'
import { readJson, writeJson } from '../files.ts'
import type { ImageFormat } from '../images/image-header.ts'
import type { StatePaths } from '../paths.ts'

type Result = NonNullable<CaptureStatus['result']>

/** What is copied: a qcow2 file, and the read-only image below it, if there is one. */
export interface CopySource {
  file: string
  base: { file: string; format: ImageFormat } | null
}

/** A copy of a disk, from its beginning on. */
export interface CaptureRecord {
  kind: CaptureSpec['kind']
  consistency: Result['consistency']
  /** What starts the guest, for the image of a VM; null for other copies. */
  boot: Record<string, unknown> | null
  sizeGib: number
  /** The running VM whose QEMU still copies; null when it has ended, or if no QEMU was needed. */
  vmId: string | null
  /** What is copied into the file of this copy. */
  from: CopySource
  result: Result | null
}

/** A copy is a qcow2 file; `capture.json` next to it says how it was made. */
export class CaptureFiles {
  readonly #paths: StatePaths

  constructor(paths: StatePaths) {
    this.#paths = paths
  }

  async ids(): Promise<string[]> {
    return readdir(this.#paths.captures).catch(() => [])
  }

  folder(id: string): string {
    return this.#paths.capture(id)
  }

  /** The complete copy. */
  imageFile(id: string): string {
    return join(this.folder(id), 'data.qcow2')
  }

  /** What the QEMU of a running VM copied, until it is copied again in the sandbox. */
  backupFile(id: string): string {
    return join(this.folder(id), 'backup.qcow2')
  }

  read(id: string): Promise<CaptureRecord | null> {
    return readJson<CaptureRecord>(join(this.folder(id), 'capture.json'))
  }

  async write(id: string, record: CaptureRecord): Promise<void> {
    await mkdir(this.folder(id), { recursive: true, mode: 0o700 })
    await writeJson(join(this.folder(id), 'capture.json'), record)
  }

  async remove(id: string): Promise<void> {
    await rm(this.folder(id), { recursive: true, force: true, maxRetries: 5 })
  }
}
