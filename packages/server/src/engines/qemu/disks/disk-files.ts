import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type DiskSpec, noSuchDisk } from '../../engine.ts'
import { run } from '../command.ts'
import { readJson, writeJson } from '../files.ts'
import { describeFile } from '../images/image-header.ts'
import type { StatePaths } from '../paths.ts'

/** `isCopying`: the disk is still being filled from a snapshot. */
export type DiskRecord = DiskSpec & { isCopying?: true }

/** A data disk is a qcow2 file and a shared volume is a folder; `disk.json` next to it has its specification. */
export class DiskFiles {
  readonly #paths: StatePaths

  constructor(paths: StatePaths) {
    this.#paths = paths
  }

  async ids(): Promise<string[]> {
    return readdir(this.#paths.disks).catch(() => [])
  }

  folder(id: string): string {
    return this.#paths.disk(id)
  }

  read(id: string): Promise<DiskRecord | null> {
    return readJson<DiskRecord>(join(this.#paths.disk(id), 'disk.json'))
  }

  async require(id: string): Promise<DiskSpec> {
    const disk = await this.read(id)
    if (!disk) throw noSuchDisk(id)
    return disk
  }

  imageFile(id: string): string {
    return join(this.#paths.disk(id), 'data.qcow2')
  }

  shareFolder(id: string): string {
    return join(this.#paths.disk(id), 'share')
  }

  async create(disk: DiskSpec, signal: AbortSignal): Promise<void> {
    const folder = this.#paths.disk(disk.id)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    try {
      if (disk.type === 'shared-volume') await mkdir(this.shareFolder(disk.id), { recursive: true })
      else await createImage(this.imageFile(disk.id), disk.sizeGib, signal)
      await writeJson(join(folder, 'disk.json'), disk)
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  /** Records the disk before its content is copied. */
  async beginCopying({ source: _, ...disk }: DiskSpec): Promise<void> {
    await mkdir(this.folder(disk.id), { recursive: true, mode: 0o700 })
    await writeJson(join(this.folder(disk.id), 'disk.json'), { ...disk, isCopying: true })
  }

  async recordSize({ source: _, ...disk }: DiskSpec, sizeGib: number): Promise<void> {
    await writeJson(join(this.#paths.disk(disk.id), 'disk.json'), { ...disk, sizeGib })
  }

  async remove(id: string): Promise<void> {
    await rm(this.#paths.disk(id), { recursive: true, force: true })
  }
}

export async function createImage(file: string, sizeGib: number, signal: AbortSignal): Promise<void> {
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', file, `${sizeGib}G`], { signal })
}

export async function growImage(file: string, sizeGib: number, signal: AbortSignal): Promise<void> {
  await describeFile(file)
  await run('qemu-img', ['resize', '-q', '-f', 'qcow2', file, `${sizeGib}G`], { signal })
}

/** Creates a copy-on-write image of a read-only base; a failed attempt leaves no file. */
export async function createOverlay(
  file: string,
  base: { file: string; format: string; sizeGib: number },
  signal: AbortSignal,
): Promise<void> {
  const args = ['create', '-q', '-f', 'qcow2', '-b', base.file, '-F', base.format, file, `${base.sizeGib}G`]
  try {
    await run('qemu-img', args, { signal })
  } catch (error) {
    await rm(file, { force: true })
    throw error
  }
}
