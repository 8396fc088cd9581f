import { Failure } from '../domain/failure.ts'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const maxLevels = 64
const maxFields = 1_000
/** The number of fields and items in all objects and arrays together. */
const maxValues = 20_000

/** Strict JSON: valid UTF-8, no NUL or lone surrogate in a string, and limits on depth and size. */
export function parseJson(raw: Buffer): unknown {
  let text: string
  try {
    text = decoder.decode(raw)
  } catch {
    throw new Failure('invalid_argument', 'The body is not valid UTF-8.')
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Failure('invalid_argument', 'The body is not valid JSON.')
  }
  checkValues(value)
  return value
}

/** Checks the limits and the strings: PostgreSQL can store neither NUL nor lone surrogates. */
function checkValues(root: unknown): void {
  const open: { value: unknown; level: number }[] = [{ value: root, level: 0 }]
  let values = 0
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, level } = next
    if (typeof value === 'string') requireCleanText(value)
    else if (typeof value === 'object' && value !== null) {
      if (level >= maxLevels)
        throw new Failure('invalid_argument', `The body is nested deeper than ${maxLevels} levels.`)
      const members = Object.entries(value)
      values += members.length
      if (members.length > maxFields && !Array.isArray(value))
        throw new Failure('invalid_argument', `An object in the body has more than ${maxFields} fields.`)
      if (values > maxValues)
        throw new Failure('invalid_argument', `The body has more than ${maxValues} values.`)
      for (const [key, member] of members) {
        if (!Array.isArray(value)) requireCleanText(key)
        open.push({ value: member, level: level + 1 })
      }
    }
  }
}

export function requireCleanText(text: string): void {
  if (text.includes('\0')) throw new Failure('invalid_argument', 'A string contains a NUL character.')
  if (!text.isWellFormed())
    throw new Failure('invalid_argument', 'A string contains half of a surrogate pair.')
}
