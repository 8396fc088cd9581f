import { randomBytes } from 'node:crypto'
import { promises as fs } from 'node:fs'
import { join } from 'node:path'

/** What `credentials.json` in the data directory holds: where the service is and how to get in. */
export interface Credentials {
  api_url: string
  console_url: string
  organization_id: string
  project_id: string
  email: string
  password: string
  access_key: string
  operator_key: string
  /** Somebody to sign in as who runs the service; empty where there is none. */
  operator_email: string
  operator_password: string
}

const fields = [
  'api_url',
  'console_url',
  'organization_id',
  'project_id',
  'email',
  'password',
  'access_key',
  'operator_key',
  'operator_email',
  'operator_password',
] as const satisfies (keyof Credentials)[]

export const credentialsPath = (dataDir: string): string => join(dataDir, 'credentials.json')

/** Null when there is no such file, or it does not hold what it should. */
export async function readCredentials(dataDir: string): Promise<Credentials | null> {
  const text = await fs.readFile(credentialsPath(dataDir), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (text === null) return null
  try {
    const content = JSON.parse(text) as Record<string, unknown>
    return fields.every((field) => typeof content[field] === 'string')
      ? (content as unknown as Credentials)
      : null
  } catch {
    return null
  }
}

/** Whole or not at all, and never readable by others, not even for a moment. */
export async function writeCredentials(dataDir: string, credentials: Credentials): Promise<void> {
  await fs.mkdir(dataDir, { recursive: true })
  const temporary = `${credentialsPath(dataDir)}.${randomBytes(6).toString('hex')}`
  try {
    await fs.writeFile(temporary, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    await fs.rename(temporary, credentialsPath(dataDir))
  } catch (error) {
    await fs.rm(temporary, { force: true })
    throw error
  }
}
