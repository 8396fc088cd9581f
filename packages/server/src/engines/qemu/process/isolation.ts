import { randomInt } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, chown, lchown, mkdir, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../command.ts'
import { readJson, writeJson } from '../files.ts'
import { Cgroups, type Limits } from './cgroup.ts'

/** Numbers that no distribution gives to users, services or containers: one is drawn for each VM and kept. */
const firstUid = 0x7000_0000
const lastUid = 0x7fff_fffe
/** What a VM has no business with, hidden from it: its own files it reaches by its working directory. */
const hiddenFolders = ['/home', '/root', '/tmp', '/var/tmp', '/run', '/srv', '/mnt', '/media']
const hideScript =
  `for d in ${hiddenFolders.join(' ')}; do case "$SLIPWAY_PROGRAM" in "$d"/*) continue;; esac; ` +
  '[ -d "$d" ] && [ ! -L "$d" ] && mount -t tmpfs -o ro,size=4k,mode=755 tmpfs "$d"; done; exec "$@"'

const isRoot = () => process.getuid?.() === 0

/** How VMs are kept apart from the host and from each other: by what this process may do on this machine. */
export class Isolation {
  /** Said to operators, in the log and in the host record. */
  readonly notIsolated: string[]
  readonly hasOwnUsers: boolean
  readonly #namespaces: string[]
  readonly #cgroups: Cgroups | null
  readonly #groups: number[]

  private constructor(hasOwnUsers: boolean, namespaces: string[], cgroups: Cgroups | null, groups: number[]) {
    this.hasOwnUsers = hasOwnUsers
    this.#namespaces = namespaces
    this.#cgroups = cgroups
    this.#groups = groups
    this.notIsolated = [
      ...(hasOwnUsers ? [] : ['user: every VM runs as the user of the server']),
      ...(cgroups ? [] : ['cgroup: no limits on memory, processes and CPU of a QEMU process']),
      ...(namespaces.includes('--mount') ? [] : ['mounts: QEMU sees the files that its user may read']),
      // The program itself takes root to make its walls.
      ...(isRoot() ? [] : ['volumes: virtiofsd, which serves shared volumes, runs without its sandbox']),
      ...(namespaces.includes('--net') ? [] : ['network: a QEMU that was taken over could open connections']),
    ]
  }

  /** `groups` are those that VMs need for devices of the host. */
  static async find(location: string, groups: number[]): Promise<Isolation> {
    const may = (program: string, args: string[]) =>
      run(program, args).then(
        () => true,
        () => false,
      )
    if (!isRoot() || !(await may('setpriv', ['--version']))) return new Isolation(false, [], null, [])
    const namespaces = []
    for (const kind of ['--mount', '--net', '--ipc'])
      if (await may('unshare', [kind, 'true'])) namespaces.push(kind)
    return new Isolation(true, namespaces, await Cgroups.open(`slipway-${location}`), groups)
  }

  /** For the host record. */
  describe(): Record<string, unknown> {
    return {
      own_user: this.hasOwnUsers,
      own_cgroup: this.#cgroups !== null,
      own_namespaces: this.#namespaces.map((kind) => kind.slice(2)),
    }
  }

  /** The VM's user; null where all are the server's. */
  async uidOf(vmDir: string): Promise<number | null> {
    if (!this.hasOwnUsers) return null
    const file = join(vmDir, 'user.json')
    const known = await readJson<{ uid: number }>(file)
    if (known) return known.uid
    const uid = randomInt(firstUid, lastUid)
    await writeJson(file, { uid })
    return uid
  }

  /** A file in the VM's folder that its QEMU is to write. The folder is the server's, so that no link is in its place. */
  async give(vmDir: string, name: string): Promise<void> {
    const uid = await this.uidOf(vmDir)
    if (uid !== null) await lchown(join(vmDir, name), uid, uid)
  }

  /** A device that this VM alone is to have while it runs. */
  async giveDevice(vmDir: string, device: string): Promise<void> {
    const uid = await this.uidOf(vmDir)
    if (uid !== null) await lchown(device, uid, uid)
  }

  /**
   * Readies the folder: QEMU may pass through it to the files that are its own, and write nothing into it but, until
   * it is up, its sockets. So a QEMU that was taken over cannot lay a link where the server reads or writes.
   */
  async prepare(vmDir: string, files: string[]): Promise<void> {
    const uid = await this.uidOf(vmDir)
    const sockets = join(vmDir, 'sockets')
    await mkdir(sockets, { recursive: true, mode: 0o700 })
    const serial = await open(
      join(vmDir, 'serial.log'),
      constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW,
      0o600,
    )
    await serial.close()
    if (uid === null) return
    await chown(vmDir, 0, uid)
    await chmod(vmDir, 0o710)
    await chown(sockets, uid, uid)
    for (const file of ['serial.log', ...files]) await this.give(vmDir, file)
  }

  /** QEMU listens; from here on it can make no file anywhere. */
  async seal(vmDir: string): Promise<void> {
    if (this.hasOwnUsers) await chown(join(vmDir, 'sockets'), 0, 0)
  }

  /** What stands before QEMU's own command line, and the groups that the whole is to enter first. */
  async wrap(vmDir: string, vmId: string, program: string, limits: Limits): Promise<Wrapped> {
    const uid = await this.uidOf(vmDir)
    const cgroupFiles = (await this.#cgroups?.make(vmId, limits)) ?? []
    if (uid === null) return { command: [program], cgroupFiles }
    const groups = this.#groups.length > 0 ? ['--groups', this.#groups.join(',')] : ['--clear-groups']
    const user = ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, ...groups]
    const rights = ['--no-new-privs', '--bounding-set', '-all', '--inh-caps', '-all']
    const hidden = this.#namespaces.includes('--mount')
      ? ['/bin/sh', '-c', hideScript, 'slipway-vm', ...user, ...rights, program]
      : [...user, ...rights, program]
    const command = this.#namespaces.length > 0 ? ['unshare', ...this.#namespaces, ...hidden] : hidden
    return { command, cgroupFiles }
  }

  /** The groups that a process beside QEMU enters that works for this VM alone. */
  async groupsOf(vmId: string): Promise<string[]> {
    return (await this.#cgroups?.enter(vmId)) ?? []
  }

  async release(vmId: string): Promise<void> {
    await this.#cgroups?.remove(vmId)
  }
}

export interface Wrapped {
  command: string[]
  cgroupFiles: string[]
}

/** The group that opens a device to others than root; null when there is none. */
export async function deviceGroup(device: string): Promise<number | 'everyone' | null> {
  const facts = await stat(device).catch(() => null)
  if (!facts) return null
  if ((facts.mode & 0o006) === 0o006) return 'everyone'
  return (facts.mode & 0o060) === 0o060 && facts.gid !== 0 ? facts.gid : null
}
