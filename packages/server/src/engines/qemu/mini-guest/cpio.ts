/** An entry of a file tree. All entries are owned by root. */
export type TreeEntry =
  | { path: string; kind: 'directory'; mode: number }
  | { path: string; kind: 'file'; mode: number; content: Buffer }
  | { path: string; kind: 'link'; target: string }

const typeBits = { directory: 0o040000, file: 0o100000, link: 0o120000 }

/** Creates a `newc` cpio archive, which the kernel unpacks as its initial root file system. */
export function cpioArchive(entries: TreeEntry[]): Buffer {
  const parts: Buffer[] = []
  let inode = 1
  for (const entry of entries) {
    const mode = typeBits[entry.kind] | (entry.kind === 'link' ? 0o777 : entry.mode)
    pushRecord(parts, inode++, mode, entry.path, contentOf(entry))
  }
  pushRecord(parts, 0, 0, 'TRAILER!!!', Buffer.alloc(0))
  return Buffer.concat(parts)
}

function contentOf(entry: TreeEntry): Buffer {
  switch (entry.kind) {
    case 'file':
      return entry.content
    case 'link':
      return Buffer.from(entry.target)
    case 'directory':
      return Buffer.alloc(0)
  }
}

function pushRecord(parts: Buffer[], inode: number, mode: number, path: string, content: Buffer): void {
  const name = Buffer.from(`${path}\0`)
  const fields = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length, 0]
  const header = Buffer.from(`070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`)
  parts.push(padded(Buffer.concat([header, name])), padded(content))
}

function padded(buffer: Buffer): Buffer {
  const rest = buffer.length % 4
  return rest === 0 ? buffer : Buffer.concat([buffer, Buffer.alloc(4 - rest)])
}
