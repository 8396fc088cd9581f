import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hostArchitecture } from '../../../src/engines/qemu/architecture.ts'
import { uefiImage } from './uefi-image.ts'

const exec = promisify(execFile)
const ROOT_MIB = 1536
const PACKAGES = [
  ...['systemd-sysv', 'udev', 'dbus', 'cloud-init', 'netplan.io', 'openssh-server', 'iproute2'],
  // cloud-init uses this to grow a disk.
  ...['cloud-guest-utils', 'e2fsprogs', 'fdisk'],
]
const FILES = {
  'etc/fstab': 'LABEL=root / ext4 defaults 0 1\n',
  // Without this file, cloud-init fails because it requests a locale that does not exist.
  'etc/default/locale': 'LANG=C.UTF-8\n',
}

/**
 * A disk image like those of distributions, built from Debian packages: GPT, an EFI system partition, a root file
 * system with systemd, OpenSSH and cloud-init. Building takes minutes, so the image is built once and kept.
 */
export async function cloudImage(cacheDir: string): Promise<string> {
  const arch = hostArchitecture()
  const recipe = createHash('sha256')
    .update(JSON.stringify([PACKAGES, FILES]))
    .digest('hex')
    .slice(0, 8)
  const image = join(cacheDir, `debian-cloud-${arch.name}-${recipe}.qcow2`)
  if (await stat(image).catch(() => null)) return image
  const work = join(cacheDir, 'debian-cloud-build')
  await rm(work, { recursive: true, force: true })
  await mkdir(work, { recursive: true })
  const rootDir = join(work, 'root')

  const include = [...PACKAGES, `linux-image-cloud-${arch.debianName}`, 'systemd-boot-efi'].join(',')
  await exec('mmdebstrap', ['--variant=minbase', `--include=${include}`, 'bookworm', rootDir])
  for (const [path, content] of Object.entries(FILES)) await writeFile(join(rootDir, path), content)
  const boot = await readdir(join(rootDir, 'boot'))
  const bootFile = (prefix: string) => join(rootDir, 'boot', boot.find((name) => name.startsWith(prefix))!)
  const made = join(work, 'image')
  const parts = { kernel: bootFile('vmlinuz-'), initrd: bootFile('initrd.img-'), rootMib: ROOT_MIB }
  const commandLine = `root=LABEL=root rw console=${arch.serialConsole}`
  await uefiImage(made, { systemDir: rootDir, rootDir, commandLine, ...parts }, work)
  await rename(made, image)
  await rm(work, { recursive: true, force: true })
  return image
}
