import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hostArchitecture } from '../../src/engines/qemu/architecture.ts'

const exec = promisify(execFile)
const MIB = 1024 ** 2
const ESP_MIB = 128
const ROOT_MIB = 1536
const PACKAGES = [
  ...['systemd-sysv', 'udev', 'dbus', 'cloud-init', 'netplan.io', 'openssh-server', 'iproute2'],
  // What cloud-init grows a disk with.
  ...['cloud-guest-utils', 'e2fsprogs', 'fdisk'],
]
const FILES = {
  'etc/fstab': 'LABEL=root / ext4 defaults 0 1\n',
  // Without it cloud-init asks for a locale that nobody has generated, and ends in an error.
  'etc/default/locale': 'LANG=C.UTF-8\n',
}
const EFI_NAMES = {
  x86_64: ['linuxx64.efi.stub', 'BOOTX64.EFI'],
  aarch64: ['linuxaa64.efi.stub', 'BOOTAA64.EFI'],
}

/**
 * A disk image as distributions publish them, made from Debian packages: GPT, an EFI system partition, a root file
 * system with systemd, OpenSSH and cloud-init. It takes minutes, so it is made once and kept.
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
  const at = (name: string) => join(work, name)

  const include = [...PACKAGES, `linux-image-cloud-${arch.debianName}`, 'systemd-boot-efi'].join(',')
  await exec('mmdebstrap', ['--variant=minbase', `--include=${include}`, 'bookworm', at('root')])
  for (const [path, content] of Object.entries(FILES)) await writeFile(at(`root/${path}`), content)
  await unifiedKernel(at, EFI_NAMES[arch.name][0]!, `root=LABEL=root rw console=${arch.serialConsole}`)

  await writeFile(at('esp'), '')
  await truncate(at('esp'), ESP_MIB * MIB)
  await exec('/sbin/mkfs.vfat', ['-F', '32', at('esp')])
  await exec('mmd', ['-i', at('esp'), '::/EFI', '::/EFI/BOOT'])
  await exec('mcopy', ['-i', at('esp'), at('kernel.efi'), `::/EFI/BOOT/${EFI_NAMES[arch.name][1]}`])
  await writeFile(at('rootfs'), '')
  await truncate(at('rootfs'), ROOT_MIB * MIB)
  await exec('/sbin/mkfs.ext4', ['-q', '-F', '-L', 'root', '-d', at('root'), at('rootfs')])

  await writeFile(at('disk'), '')
  await truncate(at('disk'), (ESP_MIB + ROOT_MIB + 2) * MIB)
  const table = `label: gpt\nstart=1MiB, size=${ESP_MIB}MiB, type=uefi\nstart=${ESP_MIB + 1}MiB, size=${ROOT_MIB}MiB, type=linux\n`
  await writeFile(at('table'), table)
  await exec('sh', ['-c', `/sbin/sfdisk -q ${at('disk')} <${at('table')}`])
  await placeAt(at('esp'), at('disk'), 1)
  await placeAt(at('rootfs'), at('disk'), ESP_MIB + 1)
  await exec('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', at('disk'), at('image')])
  await rename(at('image'), image)
  await rm(work, { recursive: true, force: true })
  return image
}

/** Kernel, initramfs and command line in one EFI program, around the stub that systemd ships for this. */
async function unifiedKernel(
  at: (name: string) => string,
  stubName: string,
  commandLine: string,
): Promise<void> {
  const boot = await readdir(at('root/boot'))
  const bootFile = (prefix: string) => join(at('root/boot'), boot.find((name) => name.startsWith(prefix))!)
  await copyFile(join(at('root/usr/lib/systemd/boot/efi'), stubName), at('stub'))
  await writeFile(at('command-line'), commandLine)
  const headers = (await exec('objdump', ['-h', '-p', at('stub')])).stdout
  const pageBytes = Number.parseInt(/SectionAlignment\s+([0-9a-f]+)/.exec(headers)![1]!, 16)
  const ends = [...headers.matchAll(/^\s+\d+ \.\S+\s+([0-9a-f]+)\s+([0-9a-f]+)/gm)].map(
    ([, size, address]) => Number.parseInt(size!, 16) + Number.parseInt(address!, 16),
  )
  let end = Math.max(...ends)
  const args: string[] = []
  for (const [section, file] of [
    ['.osrel', at('root/usr/lib/os-release')],
    ['.cmdline', at('command-line')],
    ['.linux', bootFile('vmlinuz-')],
    ['.initrd', bootFile('initrd.img-')],
  ]) {
    const address = Math.ceil(end / pageBytes) * pageBytes
    args.push('--add-section', `${section}=${file}`, '--change-section-vma', `${section}=${address}`)
    end = address + (await readFile(file!)).length
  }
  await exec('objcopy', [...args, at('stub'), at('kernel.efi')])
}

async function placeAt(part: string, disk: string, offsetMib: number): Promise<void> {
  await exec('dd', [
    `if=${part}`,
    `of=${disk}`,
    'bs=1M',
    `seek=${offsetMib}`,
    'conv=notrunc,sparse',
    'status=none',
  ])
}
