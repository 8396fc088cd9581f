import { randomBytes } from 'node:crypto'
import { promises as fs } from 'node:fs'

/**
 * Calls `write` with the path of a temporary file next to `path`, and removes that file afterwards. `write`
 * must write the file and then rename or link it to `path`, so that readers never see a partly written file.
 */
export async function withTemporaryFile(
  path: string,
  write: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await write(temporary)
  } finally {
    await fs.rm(temporary, { force: true })
  }
}
