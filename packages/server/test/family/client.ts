import { createHmac } from 'node:crypto'
import { exchange } from '@slipway/testing/requests.ts'
import type { TestService } from '@slipway/testing/service.ts'

export interface SigningKey {
  id: string
  prefix: string
  secret: string
}

export interface FamilyResponse {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: responses of every shape
  body: any
}

interface SignedOptions {
  body?: unknown
  timestamp?: string
  /** The canonical query that is signed, if it is not the escaped form. */
  signedQuery?: string
  headers?: Record<string, string>
}

/** The time formats of clients in Go and in Python. */
export const goTime = (at = Date.now()) => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')
export const pythonTime = (at = Date.now()) => goTime(at).replace('Z', '+00:00')

export function signatureOf(
  secret: string,
  parts: { path: string; query: string; method: string; at: string },
) {
  const text = `${parts.path}\n${parts.query}\n${parts.method}\n${parts.at}\n`
  return createHmac('sha256', Buffer.from(secret, 'base64url')).update(text).digest('base64url')
}

let count = 0
/** Equal requests with equal signatures count as one request, so each call returns a different time. */
const ownTime = () => new Date().toISOString().replace('Z', `${String(++count % 1_000).padStart(3, '0')}Z`)

/** Signs and sends requests as the public clients of this family of APIs do. */
export function familyClient(service: Pick<TestService, 'url'>, key: Pick<SigningKey, 'prefix' | 'secret'>) {
  return async (method: string, path: string, options: SignedOptions = {}): Promise<FamilyResponse> => {
    const [plain = '', query = ''] = path.split('?')
    const at = options.timestamp ?? ownTime()
    const signedQuery = options.signedQuery ?? query
    const signature = signatureOf(key.secret, { path: plain, query: signedQuery, method, at })
    const headers = {
      authorization: `Bearer 1.0:${key.prefix}:${signature}`,
      'x-crusoe-timestamp': at,
      'content-type': 'application/json',
      ...options.headers,
    }
    const body = options.body === undefined ? undefined : JSON.stringify(options.body)
    const response = await exchange(method, `${service.url}${path}`, headers, body)
    return { ...response, body: response.text === '' ? undefined : JSON.parse(response.text) }
  }
}
