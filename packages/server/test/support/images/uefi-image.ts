import { execFile } from 'node:child_process'
import { copyFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hostArchitecture } from '../../../src/engines/qemu/architecture.ts'

const exec = promisify(execFile)
const MIB = 1024 ** 2
const ESP_MIB = 128
const EFI_NAMES = {
  x86_64: { stub: 'linuxx64.efi.stub', program: 'BOOTX64.EFI' },
  aarch64: { stub: 'linuxaa64.efi.stub', program: 'BOOTAA64.EFI' },
}

export interface UefiImage {
  /** The directory of an unpacked system that contains the stub of `systemd-boot-efi`. */
  systemDir: string
  kernel: string
  initrd: string
  /** The folder that becomes the root file system, labelled `root`. */
  rootDir: string
  rootMib: number
  commandLine: string
}

/**
 * Creates a qcow2 disk that boots with UEFI: GPT, an EFI system partition and a root file system. Needs no loop mounts.
 */
export async function uefiImage(target: string, image: UefiImage, workDir: string): Promise<void> {
  const at = (name: string) => join(workDir, name)
  const names = EFI_NAMES[hostArchitecture().name]
  await copyFile(join(image.systemDir, 'usr/lib/systemd/boot/efi', names.stub), at('stub'))
  await unifiedKernel(at, image)

  await sparseFile(at('esp'), ESP_MIB)
  await exec('/sbin/mkfs.vfat', ['-F', '32', at('esp')])
  await exec('mmd', ['-i', at('esp'), '::/EFI', '::/EFI/BOOT'])
  await exec('mcopy', ['-i', at('esp'), at('kernel.efi'), `::/EFI/BOOT/${names.program}`])
  await sparseFile(at('rootfs'), image.rootMib)
  await exec('/sbin/mkfs.ext4', ['-q', '-F', '-L', 'root', '-d', image.rootDir, at('rootfs')])

  await sparseFile(at('disk'), ESP_MIB + image.rootMib + 2)
  const table = `label: gpt\nstart=1MiB, size=${ESP_MIB}MiB, type=uefi\nstart=${ESP_MIB + 1}MiB, size=${image.rootMib}MiB, type=linux\n`
  await writeFile(at('table'), table)
  await exec('sh', ['-c', `/sbin/sfdisk -q ${at('disk')} <${at('table')}`])
  await placeAt(at('esp'), at('disk'), 1)
  await placeAt(at('rootfs'), at('disk'), ESP_MIB + 1)
  await exec('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', at('disk'), target])
}

/** Combines kernel, initramfs and command line into one EFI program, with the stub that systemd ships for this. */
async function unifiedKernel(
  at: (name: string) => string,
  { kernel, initrd, rootDir, commandLine }: UefiImage,
): Promise<void> {
  await writeFile(at('command-line'), commandLine)
  const headers = (await exec('objdump', ['-h', '-p', at('stub')])).stdout
  const pageBytes = Number.parseInt(/SectionAlignment\s+([0-9a-f]+)/.exec(headers)![1]!, 16)
  const ends = [...headers.matchAll(/^\s+\d+ \.\S+\s+([0-9a-f]+)\s+([0-9a-f]+)/gm)].map(
    ([, size, address]) => Number.parseInt(size!, 16) + Number.parseInt(address!, 16),
  )
  let end = Math.max(...ends)
  const args: string[] = []
  for (const [section, file] of [
    ['.osrel', join(rootDir, 'etc/os-release')],
    ['.cmdline', at('command-line')],
    ['.linux', kernel],
    ['.initrd', initrd],
  ]) {
    const address = Math.ceil(end / pageBytes) * pageBytes
    args.push('--add-section', `${section}=${file}`, '--change-section-vma', `${section}=${address}`)
    end = address + (await stat(file!)).size
  }
  await exec('objcopy', [...args, at('stub'), at('kernel.efi')])
}

async function sparseFile(file: string, sizeMib: number): Promise<void> {
  await writeFile(file, '')
  await truncate(file, sizeMib * MIB)
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
