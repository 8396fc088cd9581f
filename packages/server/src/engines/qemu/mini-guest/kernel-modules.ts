import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface KernelModule {
  name: string
  content: Buffer
}

/**
 * Returns the modules and their dependencies, in load order. An unpacked package has no `modules.dep`, so the
 * dependencies are read from the modules themselves. Built-in and unknown modules are omitted.
 */
export async function modulesInLoadOrder(modulesDir: string, wanted: string[]): Promise<KernelModule[]> {
  const fileOf = new Map<string, string>()
  for (const file of await readdir(modulesDir, { recursive: true })) {
    const match = /([^/]+)\.ko(\.xz|\.zst|\.gz)?$/.exec(file)
    if (match) fileOf.set(canonical(match[1]!), join(modulesDir, file))
  }
  const ordered = new Map<string, KernelModule>()
  const add = async (name: string): Promise<void> => {
    const file = fileOf.get(name)
    if (!file || ordered.has(name)) return
    const content = await readModule(file)
    for (const needed of dependenciesOf(content)) await add(needed)
    ordered.set(name, { name, content })
  }
  for (const name of wanted) await add(canonical(name))
  return [...ordered.values()]
}

async function readModule(file: string): Promise<Buffer> {
  const unpacker = { '.xz': 'xz', '.zst': 'zstd', '.gz': 'gzip' }[/\.(xz|zst|gz)$/.exec(file)?.[0] ?? '']
  if (!unpacker) return readFile(file)
  return execFileSync(unpacker, ['-dc', file], { maxBuffer: 64 * 1024 * 1024 })
}

export function dependenciesOf(content: Buffer): string[] {
  const at = content.indexOf('\0depends=')
  if (at < 0) return []
  const start = at + '\0depends='.length
  const list = content.toString('latin1', start, content.indexOf(0, start))
  return list.split(',').filter(Boolean).map(canonical)
}

function canonical(name: string): string {
  return name.replaceAll('-', '_')
}
