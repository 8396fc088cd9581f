import { randomInt } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, chown, lchown, mkdir, open, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { run } from '../command.ts'
import { isRoot, readJson, succeeds, writeJson } from '../files.ts'
import { Cgroups, type Limits } from './cgroup.ts'

/** User ids that no distribution assigns to users, services or containers. Each VM gets and keeps a random one. */
const firstUid = 0x7000_0000
const lastUid = 0x7fff_fffe
/** Hidden from VMs. A VM reaches its own files through its working directory. */
const hiddenFolders = ['/home', '/root', '/tmp', '/var/tmp', '/run', '/srv', '/mnt', '/media']
const hideScript =
  `for d in ${hiddenFolders.join(' ')}; do case "$SLIPWAY_PROGRAM" in "$d"/*) continue;; esac; ` +
  '[ -d "$d" ] && [ ! -L "$d" ] && mount -t tmpfs -o ro,size=4k,mode=755 tmpfs "$d"; done; exec "$@"'

/** Separates VMs from the host and from each other, as far as the rights of this process allow. */
export class Isolation {
  /** Shown to operators in the log and in the host report. */
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
      ...(hasOwnUsers ? [] : ["user: every VM runs as the server's user"]),
      ...(cgroups ? [] : ['cgroup: no limits on memory, processes and CPU of a QEMU process']),
      ...(namespaces.includes('--mount') ? [] : ['mounts: QEMU sees the files that its user may read']),
      // virtiofsd needs root for its sandbox.
      ...(isRoot() ? [] : ['volumes: virtiofsd, which serves shared volumes, runs without its sandbox']),
      ...(namespaces.includes('--net') ? [] : ['network: a compromised QEMU could open connections']),
    ]
  }

  /** `groups` are the user groups that VMs need for access to host devices. */
  static async find(location: string, groups: number[]): Promise<Isolation> {
    if (!isRoot() || !(await succeeds(run('setpriv', ['--version']))))
      return new Isolation(false, [], null, [])
    const namespaces = []
    for (const kind of ['--mount', '--net', '--ipc'])
      if (await succeeds(run('unshare', [kind, 'true']))) namespaces.push(kind)
    return new Isolation(true, namespaces, await Cgroups.open(`slipway-${location}`), groups)
  }

  describe(): Record<string, unknown> {
    return {
      own_user: this.hasOwnUsers,
      own_cgroup: this.#cgroups !== null,
      own_namespaces: this.#namespaces.map((kind) => kind.slice(2)),
    }
  }

  /** Returns the VM's user id; null if all VMs run as the server's user. */
  async uidOf(vmDir: string): Promise<number | null> {
    if (!this.hasOwnUsers) return null
    const file = join(vmDir, 'user.json')
    const known = await readJson<{ uid: number }>(file)
    if (known) return known.uid
    const uid = randomInt(firstUid, lastUid)
    await writeJson(file, { uid })
    return uid
  }

  /** Gives a device, or a file in the VM's folder, to the VM's user. Only the server can create links in that folder. */
  async give(vmDir: string, path: string): Promise<void> {
    const uid = await this.uidOf(vmDir)
    if (uid !== null) await lchown(resolve(vmDir, path), uid, uid)
  }

  /**
   * Prepares the folder so that QEMU can open its own files there, but cannot create files. Only its sockets
   * can be created, until `seal` is called. A compromised QEMU therefore cannot create a link where the
   * server reads or writes.
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

  /** Called when QEMU is listening; after this, it cannot create files anywhere. */
  async seal(vmDir: string): Promise<void> {
    if (this.hasOwnUsers) await chown(join(vmDir, 'sockets'), 0, 0)
  }

  /** Returns the command line that precedes QEMU's own arguments, and the cgroups to join first. */
  async wrap(vmDir: string, vmId: string, program: string, limits: Limits): Promise<WrappedCommand> {
    const uid = await this.uidOf(vmDir)
    const cgroupFiles = (await this.#cgroups?.ensureLimited(vmId, limits)) ?? []
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

  /** Returns the cgroups for a process other than QEMU that serves only this VM. */
  async groupsOf(vmId: string): Promise<string[]> {
    return (await this.#cgroups?.ensure(vmId)) ?? []
  }

  async release(vmId: string): Promise<void> {
    await this.#cgroups?.remove(vmId)
  }
}

export interface WrappedCommand {
  command: string[]
  cgroupFiles: string[]
}

/** Returns the group that has access to a device; null if only root has access. */
export async function deviceGroup(device: string): Promise<number | 'everyone' | null> {
  const facts = await stat(device).catch(() => null)
  if (!facts) return null
  if ((facts.mode & 0o006) === 0o006) return 'everyone'
  return (facts.mode & 0o060) === 0o060 && facts.gid !== 0 ? facts.gid : null
}
