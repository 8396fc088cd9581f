import { mkdir, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Writes a recorded sysfs tree as files and links, and returns its root. */
export async function layOutSysfs(name: string): Promise<string> {
  const recorded = join(import.meta.dirname, 'fixtures/sysfs', `${name}.json`)
  const { pci } = JSON.parse(await readFile(recorded, 'utf8')) as {
    pci: Record<string, { files: Record<string, string>; links: Record<string, string> }>
  }
  const root = await mkdtemp(join(tmpdir(), 'slipway-sysfs-'))
  for (const [address, device] of Object.entries(pci)) {
    const folder = join(root, 'bus/pci/devices', address)
    await mkdir(folder, { recursive: true })
    for (const [file, content] of Object.entries(device.files)) await writeFile(join(folder, file), content)
    for (const [link, target] of Object.entries(device.links)) await symlink(target, join(folder, link))
  }
  return root
}
