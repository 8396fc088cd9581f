import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { CompiledRule } from '../../domain/firewall.ts'
import type { VmSpec } from '../engine.ts'
import { stopVolumeServers } from './disks/volumes.ts'
import { readJson, readText, writeAtomically, writeJson } from './files.ts'
import type { StatePaths } from './paths.ts'
import type { ProcessIdentity } from './process/process.ts'

export interface VmRecord {
  spec: VmSpec
  rules: CompiledRule[]
  /** The generation of the rules; 0 before any are applied. */
  firewallGeneration: number
}

/** One run of a QEMU process, from power on to power off. */
export interface Run {
  runId: string
  /** Changes with each reset, so that a response from before the reset does not count. */
  bootId: string
  bootStartedAtMs: number
  /** The offset at which this boot's output begins in the serial log. */
  bootSerialOffset: number
  /** The generation of the last reset. A call with the same generation is a retry, not a second reset. */
  resetGeneration: number | null
  label: string
  process: ProcessIdentity | null
  sshPort: number
  /** Parts of the inbound rules that the forwarder cannot serve. */
  notes: string[]
}

/**
 * `answered`: the guest's SSH server responded in this boot. `stranger`: an SSH server responded with a
 * different host key. `stop`: a shutdown was requested in this run. `off`: the engine ended the process, so
 * its exit is not a crash.
 */
export type Mark = 'answered' | 'stranger' | 'stop' | 'off'

/** Files of a run, which are deleted with it. */
const runFile =
  /^(answered|stranger|stop|off)-|^(exit|qemu\.pid|scratch\.qcow2|sockets|frozen)$|^(disk|capture)-.*\.qcow2$|\.sock$/

/**
 * The files in a VM's folder. `vm.json` and `run.json` are written with the VM's lock held; marks, which are written without
 * it, are separate files, so that no writer overwrites another.
 */
export class VmRecords {
  readonly #paths: StatePaths

  constructor(paths: StatePaths) {
    this.#paths = paths
  }

  async ids(): Promise<string[]> {
    return readdir(this.#paths.vms).catch(() => [])
  }

  folder(id: string): string {
    return this.#paths.vm(id)
  }

  /**
   * The base of the OS disk, for a VM that was created from a custom image. It is a hard link, because the
   * image may be removed.
   */
  osBase(id: string): string {
    return join(this.folder(id), 'base.qcow2')
  }

  /**
   * Contains the time until which the guest's file systems may be frozen. A process that finds the file after
   * that time thaws them.
   */
  frozenFile(id: string): string {
    return join(this.folder(id), 'frozen')
  }

  osDisk(id: string): string {
    return join(this.folder(id), 'os.qcow2')
  }

  seed(id: string): string {
    return join(this.folder(id), 'seed.iso')
  }

  read(id: string): Promise<VmRecord | null> {
    return readJson<VmRecord>(join(this.folder(id), 'vm.json'))
  }

  async write(id: string, record: VmRecord): Promise<void> {
    await mkdir(this.folder(id), { recursive: true, mode: 0o700 })
    await writeJson(join(this.folder(id), 'vm.json'), record)
  }

  readRun(id: string): Promise<Run | null> {
    return readJson<Run>(join(this.folder(id), 'run.json'))
  }

  writeRun(id: string, run: Run): Promise<void> {
    return writeJson(join(this.folder(id), 'run.json'), run)
  }

  /** Deletes the files of the run. The VM then counts as off. */
  async clearRun(id: string): Promise<void> {
    const folder = this.folder(id)
    await stopVolumeServers(folder)
    await rm(join(folder, 'run.json'), { force: true })
    for (const name of await readdir(folder).catch(() => []))
      if (runFile.test(name)) await rm(join(folder, name), { recursive: true, force: true })
  }

  async mark(id: string, mark: Mark, run: Run): Promise<void> {
    if (!(await this.isMarked(id, mark, run)))
      await writeAtomically(this.#markFile(id, mark, run), `${Date.now()}`)
  }

  async isMarked(id: string, mark: Mark, run: Run): Promise<boolean> {
    return (await this.markedAtMs(id, mark, run)) !== null
  }

  async markedAtMs(id: string, mark: Mark, run: Run): Promise<number | null> {
    const text = await readText(this.#markFile(id, mark, run))
    return text === null ? null : Number(text)
  }

  #markFile(id: string, mark: Mark, { bootId, runId }: Run): string {
    const isPerBoot = mark === 'answered' || mark === 'stranger'
    return join(this.folder(id), `${mark}-${isPerBoot ? bootId : runId}`)
  }
}
