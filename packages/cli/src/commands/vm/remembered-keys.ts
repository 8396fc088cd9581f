import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { contextFilePath } from '../../core/contexts.ts'

/**
 * Maps public keys of VMs to the paths of their private keys, so that `vm ssh` finds the key that `vm create`
 * used. Only paths are stored.
 */
type KeyFile = Record<string, string>

const keyFilePath = (env: NodeJS.ProcessEnv): string => join(dirname(contextFilePath(env)), 'ssh-keys.json')

/** Returns the type and the data of a key. The comment is ignored, because it may differ. */
const partsOf = (publicKey: string): string => publicKey.split(/\s+/, 2).join(' ')

function readKeys(env: NodeJS.ProcessEnv): KeyFile {
  try {
    return JSON.parse(readFileSync(keyFilePath(env), 'utf8')) as KeyFile
  } catch {
    // If the file is missing, ssh chooses a key.
    return {}
  }
}

/** Records the path of the private key that belongs to a public key, if the file exists. */
export function rememberKey(env: NodeJS.ProcessEnv, publicKey: string, privateFile: string): void {
  const keys = readKeys(env)
  if (keys[partsOf(publicKey)] === privateFile || !existsSync(privateFile)) return
  const path = keyFilePath(env)
  const draft = `${path}.${process.pid}`
  const text = JSON.stringify({ ...keys, [partsOf(publicKey)]: privateFile }, null, 2)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(draft, `${text}\n`, { mode: 0o600 })
    renameSync(draft, path)
  } catch {
    // The VM can be created even if the home directory is not writable, as in CI.
  }
}

/** Returns the path of the private key for the first of these public keys that is recorded. */
export function findRememberedKey(env: NodeJS.ProcessEnv, publicKeys: string[]): string | undefined {
  const keys = readKeys(env)
  return publicKeys.map((key) => keys[partsOf(key)]).find((file) => file !== undefined && existsSync(file))
}
