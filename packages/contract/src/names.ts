/** Name and id patterns, without schemas, so that the console and the command line can load them alone. */

export const resourceNamePattern = '^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$'
export const resourceNameHint = 'Letters, digits, _ and -, at most 63, starting with a letter or digit.'
export const uuidPattern = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'

const resourceName = new RegExp(resourceNamePattern)
const uuid = new RegExp(uuidPattern, 'i')

export const isResourceName = (text: string): boolean => resourceName.test(text)

/** In any letter case, as people paste them. */
export const isUuid = (text: string | undefined): text is string => text !== undefined && uuid.test(text)
