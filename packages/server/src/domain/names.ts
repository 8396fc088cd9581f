/** Each `…Problem` answers what is wrong as the rest of a sentence that begins with the field, or null. */

export const RESOURCE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/

const MAX_EMAIL_CHARS = 254
const MAX_LOCAL_PART_CHARS = 64
const LOCAL_PART = /^[^\s@"(),:;<>[\]\\\p{C}]+$/u
const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const MIN_PASSWORD_CHARS = 8
const MAX_PASSWORD_CHARS = 256
const MAX_SCRIPT_BYTES = 64 * 1024

export function isResourceName(text: string): boolean {
  return RESOURCE_NAME.test(text)
}

export function resourceNameProblem(text: string): string | null {
  return isResourceName(text)
    ? null
    : 'must have 1 to 63 letters, digits, hyphens or underscores and begin with a letter or digit'
}

/**
 * The form under which an e-mail address is stored and compared, or null for what no mail could reach. Nothing is
 * trimmed: a space in an address is a mistake to show, not to hide.
 */
export function normaliseEmail(text: string): string | null {
  const email = text.toLowerCase()
  const at = email.lastIndexOf('@')
  const [local, host] = [email.slice(0, Math.max(at, 0)), email.slice(at + 1)]
  const isPlausible =
    email.length <= MAX_EMAIL_CHARS &&
    local.length <= MAX_LOCAL_PART_CHARS &&
    LOCAL_PART.test(local) &&
    !/^\.|\.\.|\.$/.test(local) &&
    host.split('.').every((label) => HOST_LABEL.test(label))
  return isPlausible ? email : null
}

/** Length is the one rule: demands on the mix of characters make passwords worse. */
export function passwordProblem(text: string): string | null {
  const chars = [...text].length
  return chars >= MIN_PASSWORD_CHARS && chars <= MAX_PASSWORD_CHARS
    ? null
    : `must have ${MIN_PASSWORD_CHARS} to ${MAX_PASSWORD_CHARS} characters`
}

export function startupScriptProblem(text: string): string | null {
  if (!text.startsWith('#!')) return 'must begin with #! and an interpreter, such as #!/bin/sh'
  if (text.includes('\0')) return 'must not contain NUL characters'
  if (new TextEncoder().encode(text).length > MAX_SCRIPT_BYTES) return 'must have at most 64 KiB'
  return null
}
