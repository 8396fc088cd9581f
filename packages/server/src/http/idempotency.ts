import { createHash } from 'node:crypto'
import { Failure } from '../domain/failure.ts'
import { hashSecret, open, seal } from '../domain/secret.ts'
import type { Tx } from '../store/database.ts'
import { findIdempotentAnswer, lockIdempotencyKey, rememberAnswer } from '../store/identity/idempotency.ts'

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

/**
 * Runs `work` unless its answer is remembered. The row that remembers it is part of the same transaction as the
 * change: either both are there or neither.
 */
export async function onceOnly(
  tx: Tx,
  request: IdempotentRequest,
  work: () => Promise<string>,
): Promise<{ answer: string; isReplay: boolean }> {
  const keyHash = hashSecret(request.key)
  const requestHash = createHash('sha256')
    .update(JSON.stringify([request.method, request.path, canonical(request.body)]))
    .digest()
  if (!(await lockIdempotencyKey(tx, request.caller, keyHash)))
    throw new Failure('conflict', 'The first request with this Idempotency-Key is still under way.', {
      retryAfterSeconds: 1,
    })
  const known = await findIdempotentAnswer(tx, request.caller, keyHash)
  if (known) {
    if (!known.request_hash.equals(requestHash))
      throw new Failure(
        'idempotency_key_reused',
        'This Idempotency-Key was used with another request: take a new one.',
      )
    return { answer: open(request.key, known.answer_sealed), isReplay: true }
  }
  const answer = await work()
  await rememberAnswer(tx, request.caller, keyHash, requestHash, seal(request.key, answer))
  return { answer, isReplay: false }
}

/** The same request has the same URL, whatever the letter case of its ids and with or without a slash at the end. */
export function plainUrl(url: string): string {
  const [path = '', ...query] = url.split('?')
  return [path.toLowerCase().replace(/\/$/, ''), ...query].join('?')
}

/** The same JSON value gives the same text, whatever the order of its members. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, canonical(member)])
  return value
}
