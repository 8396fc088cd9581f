import { execFile, execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { IncusConfig } from '../../../src/config/index.ts'
import type { VmSpec } from '../../../src/engines/engine.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { withImages } from '../../../src/engines/incus/storage/images.ts'
import { vmImage } from '../images/vm-image.ts'
import { IncusBench, type IncusMember } from '../incus-bench.ts'
import { makeKey } from '../qemu-bench.ts'
import { vmPrelude } from './vm-daemon.ts'

const exec = promisify(execFile)

/** Guests are emulated, because /dev/kvm may exist and not work. They have no device for an agent. */
const emulated = {
  'raw.qemu': '-cpu max',
  'raw.qemu.conf': '[machine]\naccel = "tcg"\n\n[device "qemu_vsock"]\n',
}

/** A single server whose guests are virtual machines. Slipway's own import added the image. */
export class VmBench {
  readonly bench: IncusBench
  readonly engine: IncusEngine
  readonly image: VmSpec['image']
  readonly sshPublicKey: string
  readonly #keyFile: string

  private constructor(
    bench: IncusBench,
    engine: IncusEngine,
    image: VmSpec['image'],
    keyFile: string,
    sshPublicKey: string,
  ) {
    this.bench = bench
    this.engine = engine
    this.image = image
    this.#keyFile = keyFile
    this.sshPublicKey = sshPublicKey
  }

  static async open(): Promise<VmBench> {
    const bench = await IncusBench.open(1, vmPrelude)
    try {
      const [member] = bench.members
      await member!.preseed('storage_pools: [{name: default, driver: dir}]\n')
      const config = bench.config({ instance_type: 'virtual-machine', profiles: ['emulated'] })
      const source = await importImage(config, await vmImage())
      const options = Object.entries(emulated).map(([key, value]) => `${key}=${value}`)
      const profile = ['--project', 'slipway', 'profile']
      await member!.cli(...profile, 'create', 'emulated')
      await member!.cli(...profile, 'set', 'emulated', ...options)
      const keyFile = join(bench.dir, 'key')
      const sshPublicKey = await makeKey(keyFile)
      const image = { name: 'mini:uefi', source }
      return new VmBench(bench, await bench.engine(config), image, keyFile, sshPublicKey)
    } catch (error) {
      await bench.close()
      throw error
    }
  }

  get member(): IncusMember {
    return this.bench.members[0]!
  }

  /** Returns the command lines of the QEMU processes. */
  async guestProcesses(): Promise<string[]> {
    const { stdout } = await exec('ip', ['netns', 'pids', this.member.namespace])
    const lines = stdout
      .split('\n')
      .filter(Boolean)
      .map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''))
    return (await Promise.all(lines)).filter((line) => line.includes('qemu-system'))
  }

  /** `hostKey`: the host key that the guest must have; without it, the key is not checked. */
  readonly ssh = async (destination: string, command: string, hostKey?: string): Promise<string> => {
    const known = hostKey
      ? ['HostKeyAlias=the-vm', `KnownHostsCommand=/bin/echo the-vm ${hostKey}`, 'StrictHostKeyChecking=yes']
      : ['StrictHostKeyChecking=no']
    const options = [...known, 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR', 'BatchMode=yes']
    const flags = ['-i', this.#keyFile, ...options.flatMap((option) => ['-o', option])]
    return (await this.bench.fromClient('ssh', ...flags, destination, command)).trim()
  }

  async close(): Promise<void> {
    await this.engine.close()
    await this.bench.close()
  }
}

function importImage(config: IncusConfig, file: string): Promise<Record<string, unknown>> {
  const sha256 = execFileSync('sha256sum', [file], { encoding: 'utf8' }).split(' ')[0]!
  return withImages(config, (images) => images.publish(file, sha256, 'mini:uefi', 'qcow2'))
}
