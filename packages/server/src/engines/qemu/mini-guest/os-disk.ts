import { chmod, mkdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../command.ts'
import type { TreeEntry } from './cpio.ts'

/** Creates a sparse qcow2 image with one ext4 file system that contains the tree. */
export async function makeOsDisk(
  file: string,
  tree: TreeEntry[],
  sizeGib: number,
  workDir: string,
): Promise<void> {
  const staging = join(workDir, 'os-root')
  const raw = join(workDir, 'os.raw')
  const owners = join(workDir, 'os-owners')
  await mkdir(staging, { recursive: true })
  for (const entry of tree) await place(staging, entry)
  await writeFile(raw, '')
  await truncate(raw, sizeGib * 1024 ** 3)
  const options = 'lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0'
  await run('mkfs.ext4', [
    ...['-q', '-F', '-m', '0', '-N', '262144', '-J', 'size=16', '-E', options, '-d', staging, raw],
  ])
  // The files belong to the user who builds the image, but in the guest they must belong to root.
  const commands = tree.flatMap(({ path }) => ['uid', 'gid'].map((field) => `sif "/${path}" ${field} 0`))
  await writeFile(owners, `${commands.join('\n')}\n`)
  await run('debugfs', ['-w', '-f', owners, raw])
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, `${file}.tmp`])
  await rename(`${file}.tmp`, file)
  await rm(raw)
}

async function place(staging: string, entry: TreeEntry): Promise<void> {
  const path = join(staging, entry.path)
  switch (entry.kind) {
    case 'directory':
      // mkdir applies the umask to its mode, and ignores the sticky bit.
      await mkdir(path, { recursive: true })
      return chmod(path, entry.mode)
    case 'file':
      await writeFile(path, entry.content)
      return chmod(path, entry.mode)
    case 'link':
      return symlink(entry.target, path)
  }
}
