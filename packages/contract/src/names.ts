/** Patterns of names and ids, without schemas, so that the console and the CLI can load them separately. */

export const resourceNamePattern = '^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$'
export const resourceNameHint = 'At most 63 letters, digits, _ and -, starting with a letter or digit.'
export const hostNamePattern = '^[a-z0-9][a-z0-9.-]{0,62}$'
export const imageNamePattern = '^[a-z0-9][a-z0-9._-]{0,62}(:[a-z0-9][a-z0-9._-]{0,62})?$'
export const imageTagPattern = '^[a-z0-9][a-z0-9._-]{0,62}$'
export const imageSourcePattern = '^[A-Za-z0-9][A-Za-z0-9._:-]*$'
export const labelKeyPattern = '^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$'
export const labelValuePattern = '^[A-Za-z0-9._-]{0,63}$'
export const maxLabels = 32
export const emailPattern = '^[^\\s@]+@[^\\s@]+$'
/**
 * Control characters can move a terminal's cursor, and direction marks reorder text. Neither is allowed in
 * names.
 */
export const unsafeCharacters =
  '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff'
export const plainTextPattern = `^[^${unsafeCharacters}]*$`
const uuidForm = '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}'
export const uuidPattern = `^${uuidForm}$`
export const uuidOrEmptyPattern = `^(${uuidForm})?$`

const resourceName = new RegExp(resourceNamePattern)
const uuid = new RegExp(uuidPattern)

export const isResourceName = (text: string): boolean => resourceName.test(text)

/** Accepts upper and lower case. */
export const isUuid = (text: string | undefined): text is string => text !== undefined && uuid.test(text)

export interface SshDestination {
  user: string
  host: string
  port: number
}

const sshDestination =
  /^([a-z_][a-z0-9._-]{0,31})@([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::([1-9][0-9]{0,4}))?$/i

/**
 * Parses `user@address` or `user@address:port`, and returns undefined for anything else. The parts become
 * arguments of ssh and lines of its configuration, so they must not begin with `-` or contain spaces or line
 * breaks.
 */
export function parseSshDestination(text: string): SshDestination | undefined {
  const [, user, host, port = '22'] = sshDestination.exec(text) ?? []
  if (user === undefined || host === undefined || Number(port) > 65_535) return undefined
  return { user, host, port: Number(port) }
}
