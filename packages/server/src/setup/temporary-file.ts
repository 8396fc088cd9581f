import { randomBytes } from 'node:crypto'
import { promises as fs } from 'node:fs'

/**
 * Lets `write` fill a temporary file next to `path` and rename it to `path`, so that readers never see a
 * partly written file.
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
