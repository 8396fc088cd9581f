const maxScriptBytes = 64 * 1024

export function scriptProblem(text: string): string | null {
  if (text.includes('\0')) return 'must not contain NUL characters'
  if (new TextEncoder().encode(text).length > maxScriptBytes) return 'must have at most 64 KiB'
  return null
}

export const isCloudConfig = (script: string): boolean => script.startsWith('#cloud-config')

/** Adds the first line that a kernel needs to run the script. */
export const runnableScript = (script: string): string =>
  script === '' || script.startsWith('#!') ? script : `#!/bin/sh\n${script}`
