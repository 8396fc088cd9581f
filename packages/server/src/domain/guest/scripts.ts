import { createHash } from 'node:crypto'

const maxScriptBytes = 64 * 1024

export function scriptProblem(text: string): string | null {
  if (text.includes('\0')) return 'must not contain NUL characters'
  if (new TextEncoder().encode(text).length > maxScriptBytes) return 'must be at most 64 KiB'
  return null
}

export const isCloudConfig = (script: string): boolean => script.startsWith('#cloud-config')

/** Adds the shebang line that the kernel needs to run the script. */
export const runnableScript = (script: string): string =>
  script === '' || script.startsWith('#!') ? script : `#!/bin/sh\n${script}`

const scriptMembers = ['startup_script', 'shutdown_script']

/**
 * Returns the request with each script replaced by `sha256:` and its digest; the same object if it has no
 * scripts.
 */
export function hideScripts<T extends object>(request: T): T {
  let shown: Record<string, unknown> = request as Record<string, unknown>
  for (const [name, value] of Object.entries(request)) {
    const hidden = hiddenMember(name, value)
    if (hidden !== value) shown = { ...shown, [name]: hidden }
  }
  return shown as T
}

function hiddenMember(name: string, value: unknown): unknown {
  if (typeof value === 'string')
    return scriptMembers.includes(name) && value !== '' ? digestText(value) : value
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? hideScripts(value) : value
}

const digestText = (script: string) => `sha256:${createHash('sha256').update(script).digest('hex')}`
