import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { CompiledRule } from '../../domain/firewall.ts'
import type { VmSpec } from '../engine.ts'
import { endVolumes } from './disks/volumes.ts'
import { readJson, readText, writeAtomically, writeJson } from './files.ts'
import type { StatePaths } from './paths.ts'
import type { ProcessIdentity } from './process/process.ts'

export interface VmRecord {
  spec: VmSpec
  rules: CompiledRule[]
  /** Of these rules; 0 before the first ones. */
  firewallGeneration: number
}

/** One life of a QEMU process, from power on to power off. */
export interface Run {
  runId: string
  /** Changes with each reset, so that an answer of the guest before it does not count after it. */
  bootId: string
  bootStartedAtMs: number
  /** Where this boot's output begins in the serial log. */
  bootSerialOffset: number
  /** The operation that reset it last; the same one again is a repeat, not a second reset. */
  resetGeneration: number | null
  label: string
  process: ProcessIdentity | null
  sshPort: number
  /** What the inbound rules ask for and the forwarder could not give. */
  notes: string[]
}

/**
 * The files of a VM's folder. `vm.json` and `run.json` are written under the VM's lock; facts that come from elsewhere
 * (the guest answered, a stop was asked for) are files of their own, so that nobody overwrites them.
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

  /** After this the VM counts as off. */
  async clearRun(id: string): Promise<void> {
    const folder = this.folder(id)
    await endVolumes(folder)
    await rm(join(folder, 'run.json'), { force: true })
    for (const name of await readdir(folder).catch(() => []))
      if (
        /^(answered|stranger|stop|off)-|^(exit|qemu\.pid|scratch\.qcow2|sockets)$|^disk-.*\.qcow2$|\.sock$/.test(
          name,
        )
      )
        await rm(join(folder, name), { recursive: true, force: true })
  }

  async markAnswered(id: string, run: Run): Promise<void> {
    await writeAtomically(join(this.folder(id), `answered-${run.bootId}`), '')
  }

  async hasAnswered(id: string, run: Run): Promise<boolean> {
    return (await readText(join(this.folder(id), `answered-${run.bootId}`))) !== null
  }

  /** An SSH server answered with another host key than the VM was given. */
  async markStranger(id: string, run: Run): Promise<void> {
    await writeAtomically(join(this.folder(id), `stranger-${run.bootId}`), '')
  }

  async hasMetStranger(id: string, run: Run): Promise<boolean> {
    return (await readText(join(this.folder(id), `stranger-${run.bootId}`))) !== null
  }

  async markStopRequested(id: string, run: Run): Promise<void> {
    if ((await this.stopRequestedAtMs(id, run)) === null)
      await writeAtomically(join(this.folder(id), `stop-${run.runId}`), `${Date.now()}`)
  }

  async stopRequestedAtMs(id: string, run: Run): Promise<number | null> {
    const text = await readText(join(this.folder(id), `stop-${run.runId}`))
    return text === null ? null : Number(text)
  }

  /** Says that we pulled the plug ourselves: the end of the process is then no crash. */
  async markOffRequested(id: string, run: Run): Promise<void> {
    await writeAtomically(join(this.folder(id), `off-${run.runId}`), '')
  }

  async isOffRequested(id: string, run: Run): Promise<boolean> {
    return (await readText(join(this.folder(id), `off-${run.runId}`))) !== null
  }
}
