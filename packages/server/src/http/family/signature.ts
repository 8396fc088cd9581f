import { createHmac, timingSafeEqual } from 'node:crypto'

/** How far the clock of a client may differ from that of this machine. */
const windowMs = 5 * 60_000

/** A signed request, before the signature is verified. */
export interface SignedRequest {
  keyId: string
  signature: string
  timestamp: string
}

type Headers = Record<string, string | string[] | undefined>

/** Returns undefined if the request is not signed in the form `Bearer 1.0:<access key id>:<signature>`. */
export function readSigned(headers: Headers): SignedRequest | undefined {
  const [, keyId, signature] =
    /^Bearer 1\.0:([\w-]{1,64}):([\w-]{43})$/i.exec(String(headers.authorization ?? '')) ?? []
  const timestamp = headers['x-crusoe-timestamp']
  if (!keyId || !signature || typeof timestamp !== 'string') return undefined
  return { keyId, signature, timestamp }
}

const timestampShape = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/

/** Compares with this machine's clock; the clock of `/_dev` does not apply to signatures. */
export function isCurrent(timestamp: string, now = Date.now()): boolean {
  return timestampShape.test(timestamp) && Math.abs(Date.parse(timestamp) - now) <= windowMs
}

/** Returns whether the signature matches this request, with the query in either form that clients sign. */
export function isSignedWith(
  secret: string,
  { signature, timestamp }: SignedRequest,
  { method, url }: { method: string; url: string },
): boolean {
  const queryAt = url.indexOf('?')
  const path = decodedPath(queryAt < 0 ? url : url.slice(0, queryAt))
  if (path === undefined) return false
  const key = Buffer.from(secret, 'base64url')
  const given = Buffer.from(signature, 'base64url')
  return canonicalQueries(queryAt < 0 ? '' : url.slice(queryAt + 1)).some((query) => {
    const text = `${path}\n${query}\n${method}\n${timestamp}\n`
    const expected = createHmac('sha256', key).update(text).digest()
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

/** A line feed in the path would make a signature valid for another request. */
function decodedPath(path: string): string | undefined {
  try {
    const decoded = decodeURIComponent(path)
    return hasControlCharacter(decoded) ? undefined : decoded
  } catch {
    return undefined
  }
}

/**
 * Some clients escape names and values, others do not. The form without escapes is accepted only if it cannot
 * be read as another query.
 */
function canonicalQueries(query: string): string[] {
  const pairs = [...new URLSearchParams(query)].sort(([a], [b]) =>
    Buffer.compare(Buffer.from(a), Buffer.from(b)),
  )
  const join = (text: (part: string) => string) =>
    pairs.map(([name, value]) => `${text(name)}=${text(value)}`).join('&')
  const escaped = join(escapeQuery)
  const isPlainForm = pairs.flat().every((part) => !/[&=]/.test(part) && !hasControlCharacter(part))
  return isPlainForm ? [escaped, join((part) => part)] : [escaped]
}

/** Escapes everything but letters, digits and `-_.~`, with a plus sign for a space. */
const escapeQuery = (text: string): string =>
  encodeURIComponent(text)
    .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')

const hasControlCharacter = (text: string): boolean =>
  [...text].some((character) => character < ' ' || character === '\x7f')
