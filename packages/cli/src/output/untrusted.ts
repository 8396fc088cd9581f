import { unsafeCharacters } from '@slipway/contract/names'

/**
 * Much of what the service sends was written by other users: key names, messages, logs. Characters that
 * control a terminal or reorder a line are shown as codes, in JSON notation.
 */
const unsafe = new RegExp(`[${unsafeCharacters}]`, 'g')
const unsafeInText = new RegExp(`\\r\\n|[\\n\\t]|\\u001b\\[[0-9;]*m|[${unsafeCharacters}]`, 'g')
const unsafeInLog = new RegExp(`\\r\\n|[\\n\\t]|[${unsafeCharacters}]`, 'g')

const codeOf = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Makes a value safe to print on one line. */
export const safeLine = (text: string): string => text.replace(unsafe, codeOf)

/** Makes text with the CLI's own layout safe to print: keeps line breaks and colors. */
export const safeText = (text: string): string =>
  text.replace(unsafeInText, (found) => (/^(\r\n|\n|\t|.{2,})$/.test(found) ? found : codeOf(found)))

/** Makes a guest's console safe to print. Escapes a lone `\r`, which could overwrite the text before it. */
export const safeLogText = (text: string): string =>
  text.replace(unsafeInLog, (found) => (/[\n\t]/.test(found) ? found : codeOf(found)))

/** Formats JSON with unsafe characters as codes, which does not change its meaning. */
export const jsonText = (data: unknown, indent?: number): string =>
  safeText(JSON.stringify(data, null, indent))
