import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '@slipway/testing/root.ts'
import { hostArchitecture } from '../../../src/engines/qemu/architecture.ts'
import { rootTree } from '../../../src/engines/qemu/mini-guest/tree.ts'

const exec = promisify(execFile)
const cache = join(root, 'node_modules/.cache/slipway-incus')

const scriptRunner = (kind: 'startup' | 'shutdown') => `#!/bin/sh
{ read -r comment; read -r data; } </etc/slipway/user-data
echo "$data" | sed -n 's|.*slipway-${kind}"[^}]*"content":"\\([^"]*\\)".*|\\1|p' | base64 -d >/run/${kind}
[ -s /run/${kind} ] && sh /run/${kind} >/dev/console 2>&1 </dev/null
`

/** Does in a shell script what a cloud image does with cloud-init: host name, address, keys, machine id and scripts. */
export const guestFiles: Record<string, string> = {
  'etc/inittab': `::sysinit:/etc/slipway/boot
::respawn:/bin/busybox nc -ll -p 22 -e /usr/sbin/dropbear -i -s -r /etc/dropbear/host_ed25519
::once:/etc/slipway/startup
::shutdown:/etc/slipway/shutdown
`,
  'etc/slipway/boot': `#!/bin/sh
echo "slipway: booting" >/dev/console
{ read -r comment; read -r data; } </etc/slipway/user-data
name=$(cat /etc/slipway/vendor-data | sed -n 's/.*"hostname":"\\([^"]*\\)".*/\\1/p')
hostname "$name"
ip link set lo up
udhcpc -i eth0 -q -f -n -t 20 -T 1 -s /etc/slipway/dhcp >/dev/null 2>&1
new_machine=$(echo "$data" | sed -n 's/.*"slipway-new-machine","sh","-c","\\(.*machine-id-setup\\)".*/\\1/p' | sed 's/\\\\"/"/g')
[ -z "$new_machine" ] || sh -c "$new_machine"
systemd-machine-id-setup
umask 077
mkdir -p /root/.ssh /etc/dropbear
echo "$data" | sed -n 's/.*"ssh_authorized_keys":\\["\\([^"]*\\)".*/\\1/p' >/root/.ssh/authorized_keys
given=$(echo "$data" | sed -n 's/.*"ed25519_private":"\\([^"]*\\)".*/\\1/p' | sed 's/\\\\n/\\n/g')
[ -z "$given" ] || { echo "$given" >/run/host-key; dropbearconvert openssh dropbear /run/host-key /etc/dropbear/host_ed25519; } >/dev/null 2>&1
[ -s /etc/dropbear/host_ed25519 ] || dropbearkey -t ed25519 -f /etc/dropbear/host_ed25519 >/dev/null 2>&1
echo "slipway: the guest is up ($name)" >/dev/console
`,
  'usr/bin/systemd-machine-id-setup': `#!/bin/sh
[ -s /etc/machine-id ] || tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
`,
  'etc/slipway/dhcp': `#!/bin/sh
[ "$1" = bound ] || exit 0
ip address add "$ip/$mask" dev "$interface"
ip link set "$interface" up
ip route add default via "$router"
`,
  'etc/slipway/startup': scriptRunner('startup'),
  'etc/slipway/shutdown': scriptRunner('shutdown'),
}

/** Creates the guest's root file system from unpacked packages, with these files in it. */
export async function makeGuestRoot(
  unpacked: string,
  rootDir: string,
  files: Record<string, string>,
): Promise<void> {
  for (const entry of await rootTree(unpacked, hostArchitecture())) {
    const path = join(rootDir, entry.path)
    await mkdir(entry.kind === 'directory' ? path : dirname(path), { recursive: true })
    if (entry.kind === 'link') await symlink(entry.target, path)
    if (entry.kind === 'file') await writeFile(path, entry.content, { mode: entry.mode })
    if (entry.kind === 'directory') await chmod(path, entry.mode)
  }
  const converter = 'usr/bin/dropbearconvert'
  await copyFile(join(unpacked, converter), join(rootDir, converter))
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(rootDir, path)), { recursive: true })
    await writeFile(join(rootDir, path), content, { mode: 0o755 })
  }
}

/** Returns a file that is built once for each recipe. `make` gets a folder to work in, and the path of the file. */
export async function cachedFile(
  name: string,
  recipe: unknown,
  make: (workDir: string, file: string) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(recipe)).digest('hex')
  const target = join(cache, name.replace('.', `-${hash.slice(0, 12)}.`))
  if (existsSync(target)) return target
  const workDir = await mkdtemp(join(tmpdir(), 'slipway-incus-image-'))
  try {
    const file = join(workDir, name)
    await make(workDir, file)
    await mkdir(cache, { recursive: true })
    await exec('cp', [file, `${target}.${process.pid}`])
    await rename(`${target}.${process.pid}`, target)
    return target
  } finally {
    await rm(workDir, { recursive: true, force: true })
  }
}
