import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { CaptureSpec, CaptureStatus } from '../../engine.ts'
import { readJson, writeJson } from '../files.ts'
import type { ImageFormat } from '../images/image-header.ts'
import type { StatePaths } from '../paths.ts'

type Result = NonNullable<CaptureStatus['result']>

/** The source of a copy: a qcow2 file and its read-only base image, if it has one. */
export interface CopySource {
  file: string
  base: { file: string; format: ImageFormat } | null
}

/** The record of a copy, written when the copy starts. */
export interface CaptureRecord {
  kind: CaptureSpec['kind']
  consistency: Result['consistency']
  /** The mini guest with the kernel for VMs of this image; null if the image has its own, and for data disks. */
  boot: Record<string, unknown> | null
  sizeGib: number
  /** The running VM whose QEMU is making a backup; null once the backup is done, or if none was needed. */
  vmId: string | null
  /** What `imageFile` is copied from. */
  from: CopySource
  result: Result | null
}

/** A copy is a qcow2 file with its record, `capture.json`, next to it. */
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

  /** The finished copy. */
  imageFile(id: string): string {
    return join(this.folder(id), 'data.qcow2')
  }

  /** The backup that the QEMU of a running VM made. A sandboxed process copies it to `imageFile`. */
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
