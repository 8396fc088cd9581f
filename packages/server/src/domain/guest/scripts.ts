const maxScriptBytes = 64 * 1024

/** What is wrong, as the rest of a sentence that begins with the field; null when nothing is. */
export function scriptProblem(text: string): string | null {
  if (text.includes('\0')) return 'must not contain NUL characters'
  if (new TextEncoder().encode(text).length > maxScriptBytes) return 'must have at most 64 KiB'
  return null
}

/** It is for cloud-init, and no script at all. */
export const isCloudConfig = (script: string): boolean => script.startsWith('#cloud-config')

/** With the line that a kernel needs to run it; '' stays none. */
export const runnableScript = (script: string): string =>
  script === '' || script.startsWith('#!') ? script : `#!/bin/sh\n${script}`
