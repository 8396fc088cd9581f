import { unsafeCharacters } from '@slipway/contract/names'

/**
 * Other users wrote much of what the service sends: names of keys, messages, logs. Characters that control a terminal or
 * reorder a line are shown as their codes, in JSON notation.
 */
const unsafe = new RegExp(`[${unsafeCharacters}]`, 'g')
const unsafeInText = new RegExp(`\\r\\n|[\\n\\t]|\\u001b\\[[0-9;]*m|[${unsafeCharacters}]`, 'g')
const unsafeInLog = new RegExp(`\\r\\n|[\\n\\t]|[${unsafeCharacters}]`, 'g')

const codeOf = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Makes a value safe to print on one line. */
export const oneLine = (text: string): string => text.replace(unsafe, codeOf)

/** Makes text with our own layout safe to print: it keeps line breaks and colors. */
export const laidOut = (text: string): string =>
  text.replace(unsafeInText, (found) => (/^(\r\n|\n|\t|.{2,})$/.test(found) ? found : codeOf(found)))

/** Keeps the lines of a guest's console. A `\r` alone would let a guest overwrite the text before it. */
export const logText = (text: string): string =>
  text.replace(unsafeInLog, (found) => (/[\n\t]/.test(found) ? found : codeOf(found)))

/** Writes JSON with such characters as codes, which does not change its meaning. */
export const jsonText = (data: unknown, indent?: number): string =>
  laidOut(JSON.stringify(data, null, indent))
