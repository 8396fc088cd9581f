import { execFile } from 'node:child_process'
import { copyFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hostArchitecture } from '../../../src/engines/qemu/architecture.ts'
import { makeSparseFile, makeUefiDisk } from '../../../src/engines/qemu/images/uefi-disk.ts'

const exec = promisify(execFile)
const STUBS = { x86_64: 'linuxx64.efi.stub', aarch64: 'linuxaa64.efi.stub' }

export interface UefiImage {
  /** The directory of an unpacked system that contains the stub of `systemd-boot-efi`. */
  systemDir: string
  kernel: string
  initrd: string
  /** The folder that becomes the root file system, labeled `root`. */
  rootDir: string
  rootMib: number
  commandLine: string
}

/** Creates a disk whose EFI program is the kernel itself, for guests without a boot loader. */
export async function uefiImage(target: string, image: UefiImage, workDir: string): Promise<void> {
  const at = (name: string) => join(workDir, name)
  const stub = STUBS[hostArchitecture().name]
  await copyFile(join(image.systemDir, 'usr/lib/systemd/boot/efi', stub), at('stub'))
  await unifiedKernel(at, image)
  await makeSparseFile(at('rootfs'), image.rootMib)
  await exec('/sbin/mkfs.ext4', ['-q', '-F', '-L', 'root', '-d', image.rootDir, at('rootfs')])
  const parts = { efiProgram: at('kernel.efi'), rootFileSystem: at('rootfs'), rootMib: image.rootMib }
  await makeUefiDisk(target, parts, workDir)
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
