import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../config/index.ts'
import { withTemporaryFile } from './temporary-file.ts'

const fields = [
  'api_url',
  'console_url',
  'organization_id',
  'project_id',
  'email',
  'password',
  'access_key',
  'operator_key',
  // Empty if there is no operator to sign in as.
  'operator_email',
  'operator_password',
] as const

/** The content of `credentials.json` in the data directory: the URLs of the service and how to sign in. */
export type Credentials = Record<(typeof fields)[number], string>

export const credentialsPath = (dataDir: string): string => join(dataDir, 'credentials.json')

/**
 * Returns null if the file does not exist. Throws if the file is damaged, because it may be the only copy of the demo's
 * passwords.
 */
export async function readCredentials(dataDir: string): Promise<Credentials | null> {
  const path = credentialsPath(dataDir)
  const text = await fs.readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // If the data directory cannot be used at all, a later part of the start reports why.
    if (['ENOENT', 'ENOTDIR'].includes(error.code ?? '')) return null
    throw new ConfigError(`${path} cannot be read (${error.code})`)
  })
  if (text === null) return null
  const content = parse(text)
  const missing = fields.filter((field) => typeof content?.[field] !== 'string')
  if (missing.length === 0) return content as Credentials
  const problem = content ? `it lacks ${missing.join(', ')}` : 'it is not a JSON object'
  throw new ConfigError(
    `${path} is damaged: ${problem}. Restore it from a backup, or delete it: at its next start, the server then creates new passwords and keys for the demo and revokes the old ones`,
  )
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const content = JSON.parse(text)
    return typeof content === 'object' ? content : null
  } catch {
    return null
  }
}

/** Writes the file so that only its owner can ever read it. */
export async function writeCredentials(dataDir: string, credentials: Credentials): Promise<void> {
  await fs.mkdir(dataDir, { recursive: true })
  await withTemporaryFile(credentialsPath(dataDir), async (temporary) => {
    await fs.writeFile(temporary, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    await fs.rename(temporary, credentialsPath(dataDir))
  })
}
