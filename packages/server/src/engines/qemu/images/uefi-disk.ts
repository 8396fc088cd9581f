import { truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hostArchitecture } from '../architecture.ts'
import { run } from '../command.ts'

const mib = 1024 ** 2
const espMib = 128
const rootStartMib = espMib + 1
const efiNames = { x86_64: 'BOOTX64.EFI', aarch64: 'BOOTAA64.EFI' }

export interface UefiDisk {
  /** The program that the firmware starts. */
  efiProgram: string
  /** A file with the root file system. */
  rootFileSystem: string
  rootMib: number
}

/**
 * Creates a qcow2 disk that boots with UEFI: GPT, an EFI system partition and a root file system, which is last so that
 * it can grow. Needs neither root nor loop devices.
 */
export async function makeUefiDisk(
  target: string,
  disk: UefiDisk,
  workDir: string,
  signal?: AbortSignal,
): Promise<void> {
  const at = (name: string) => join(workDir, name)
  await makeSparseFile(at('esp'), espMib)
  await run('mkfs.vfat', ['-F', '32', at('esp')])
  await run('mmd', ['-i', at('esp'), '::/EFI', '::/EFI/BOOT'])
  const program = `::/EFI/BOOT/${efiNames[hostArchitecture().name]}`
  await run('mcopy', ['-i', at('esp'), disk.efiProgram, program])

  await makeSparseFile(at('disk'), rootStartMib + disk.rootMib + 1)
  const esp = `start=1MiB, size=${espMib}MiB, type=uefi`
  const root = `start=${rootStartMib}MiB, size=${disk.rootMib}MiB, type=linux`
  await run('sfdisk', ['-q', at('disk')], { input: `label: gpt\n${esp}\n${root}\n` })
  await copyTo(at('disk'), at('esp'), 1, signal)
  await copyTo(at('disk'), disk.rootFileSystem, rootStartMib, signal)
  const convert = ['convert', '-f', 'raw', '-O', 'qcow2', at('disk'), target]
  await run('qemu-img', convert, { signal, timeoutMs: 3_600_000 })
}

export async function makeSparseFile(file: string, sizeMib: number): Promise<void> {
  await writeFile(file, '')
  await truncate(file, sizeMib * mib)
}

function copyTo(
  disk: string,
  part: string,
  offsetMib: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  const options = ['bs=1M', `seek=${offsetMib}`, 'conv=notrunc,sparse', 'status=none']
  return run('dd', [`if=${part}`, `of=${disk}`, ...options], { signal, timeoutMs: 3_600_000 })
}
