import { createHash } from 'node:crypto'
import { Failure } from '../domain/failure.ts'
import { hashSecret, open, seal } from '../domain/secret.ts'
import type { Tx } from '../postgres/database.ts'
import { type KeyState, lockIdempotencyKey, storeResponse } from '../store/identity/idempotency.ts'

export interface IdempotentRequest {
  key: string
  caller: string
  method: string
  path: string
  body: unknown
}

export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(header))
    throw new Failure('invalid_argument', 'Idempotency-Key must be 1 to 255 visible ASCII characters.')
  return header
}

export interface StoredResponse {
  text: string
  /** True if an earlier request with the same key produced this response. */
  isReplay: boolean
}

/**
 * Returns the stored response of the key, or runs `work` and stores its response in the same transaction as the
 * change.
 */
export async function runOnce(
  tx: Tx,
  request: IdempotentRequest | undefined,
  work: () => Promise<string>,
): Promise<StoredResponse> {
  if (!request) return { text: await work(), isReplay: false }
  const { caller, key } = request
  const { keyHash, requestHash } = hashesOf(request)
  const stored = storedResponse(key, requestHash, await lockIdempotencyKey(tx, { caller, keyHash }))
  if (stored) return stored
  const text = await work()
  await storeResponse(tx, { caller, keyHash, requestHash, responseSealed: seal(key, text) })
  return { text, isReplay: false }
}

function storedResponse(
  key: string,
  requestHash: Buffer,
  { isOurs, response }: KeyState,
): StoredResponse | undefined {
  if (!isOurs)
    throw new Failure(
      'conflict',
      'The first request with this Idempotency-Key is still in progress. Try again.',
      {
        retryAfterSeconds: 1,
      },
    )
  if (!response) return undefined
  if (!response.request_hash.equals(requestHash))
    throw new Failure(
      'idempotency_key_reused',
      'This Idempotency-Key was used with a different request. Use a new key.',
    )
  return { text: open(key, response.answer_sealed), isReplay: true }
}

const hashesOf = ({ key, method, path, body }: IdempotentRequest) => ({
  keyHash: hashSecret(key),
  requestHash: createHash('sha256')
    .update(JSON.stringify([method, path, canonical(body)]))
    .digest(),
})

/** Lower-cases the path and removes a trailing slash, so that equivalent URLs have equal hashes. */
export function plainUrl(url: string): string {
  const [path = '', ...query] = url.split('?')
  return [path.toLowerCase().replace(/\/$/, ''), ...query].join('?')
}

/** Sorts the fields of objects, so that equal JSON values have equal hashes. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, canonical(member)])
  return value
}
