const maxEmailChars = 254
const maxLocalPartChars = 64
const localPart = /^[^\s@"(),:;<>[\]\\\p{C}]+$/u
const hostLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Returns the form in which an e-mail address is stored and compared, or null if it is not valid. Spaces are
 * rejected, not trimmed.
 */
export function normalizeEmail(text: string): string | null {
  const email = text.toLowerCase()
  const at = email.lastIndexOf('@')
  const [local, host] = [email.slice(0, Math.max(at, 0)), email.slice(at + 1)]
  const isPlausible =
    email.length <= maxEmailChars &&
    local.length <= maxLocalPartChars &&
    localPart.test(local) &&
    !/^\.|\.\.|\.$/.test(local) &&
    host.split('.').every((label) => hostLabel.test(label))
  return isPlausible ? email : null
}
