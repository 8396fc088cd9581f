import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SessionTokens } from '@slipway/sdk'
import { CliError, exitCodes } from '../errors/cli-error.ts'
import { homeOf } from '../io.ts'

/** A service, and the credentials for it. */
export interface Context {
  api_url: string
  /** The id or name of the project that commands use. */
  project?: string
  /** Only for display. */
  project_name?: string
  access_key?: string
  operator_key?: string
  email?: string
  session?: SessionTokens
}

interface ContextFile {
  current: string
  contexts: Record<string, Context>
}

export function contextFilePath(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CONFIG_HOME || join(homeOf(env), '.config'), 'slipway', 'contexts.json')
}

export function readContexts(env: NodeJS.ProcessEnv): ContextFile {
  const path = contextFilePath(env)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { current: '', contexts: {} }
    throw new CliError(
      'bad_context_file',
      `Cannot read ${path}: ${(error as Error).message}`,
      exitCodes.error,
    )
  }
  try {
    const file = JSON.parse(text) as ContextFile
    if (typeof file.contexts !== 'object') throw new Error('it has no contexts')
    return file
  } catch (error) {
    throw new CliError(
      'bad_context_file',
      `${path} is not valid: ${(error as Error).message}`,
      exitCodes.error,
      ['Remove it and log in again.'],
    )
  }
}

/** Replaces the file atomically, so that no process reads a partial file. Only its owner can read the file. */
export function writeContexts(env: NodeJS.ProcessEnv, file: ContextFile): void {
  const path = contextFilePath(env)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600 })
  renameSync(draft, path)
}

export function changeContext(
  env: NodeJS.ProcessEnv,
  name: string,
  change: (context: Context | undefined) => Context | undefined,
): void {
  const file = readContexts(env)
  const next = change(file.contexts[name])
  if (next) file.contexts[name] = next
  else delete file.contexts[name]
  if (!file.contexts[file.current]) file.current = next ? name : (Object.keys(file.contexts)[0] ?? '')
  writeContexts(env, file)
}
