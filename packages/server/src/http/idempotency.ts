import { createHash } from 'node:crypto'
import { Failure } from '../domain/failure.ts'
import { hashSecret, open, seal } from '../domain/secret.ts'
import { alone, type Settled } from '../store/batches.ts'
import type { Tx } from '../store/database.ts'
import { type KeyState, openIdempotencyKeys, rememberAnswers } from '../store/identity/idempotency.ts'

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

/** What is sent, and whether it was remembered. */
export interface Answer {
  text: string
  isReplay: boolean
}

/**
 * Has `work` answer the requests whose answers are not remembered; it gets their places in the list. The rows that
 * remember an answer are part of the same transaction as the change: either both are there or neither.
 */
export async function onceOnly(
  tx: Tx,
  requests: (IdempotentRequest | undefined)[],
  work: (places: number[]) => Promise<Settled<string>[]>,
): Promise<Settled<Answer>[]> {
  const keyed = requests.flatMap((request, place) =>
    request ? [{ place, ...request, ...hashesOf(request) }] : [],
  )
  const states = keyed.length > 0 ? await openIdempotencyKeys(tx, keyed) : []
  const settled: (Settled<Answer> | undefined)[] = requests.map(() => undefined)
  for (const [index, request] of keyed.entries())
    settled[request.place] = known(request.key, request.requestHash, states[index]!)
  const places = requests.flatMap((_, place) => (settled[place] === undefined ? [place] : []))
  const answers = places.length > 0 ? await work(places) : []
  for (const [index, place] of places.entries()) {
    const answer = answers[index]!
    settled[place] = typeof answer === 'string' ? { text: answer, isReplay: false } : answer
  }
  const news = keyed.flatMap(({ place, caller, keyHash, requestHash, key }) => {
    const answer = settled[place]
    if (!isAnswer(answer) || answer.isReplay) return []
    return [{ caller, keyHash, requestHash, answerSealed: seal(key, answer.text) }]
  })
  if (news.length > 0) await tx.withCommit(rememberAnswers(tx, news))
  return settled as Settled<Answer>[]
}

export const isAnswer = (settled: Settled<Answer> | undefined): settled is Answer =>
  settled !== undefined && settled !== alone && !(settled instanceof Failure)

function known(key: string, requestHash: Buffer, { isOurs, answer }: KeyState): Answer | Failure | undefined {
  if (!isOurs)
    return new Failure('conflict', 'The first request with this Idempotency-Key is still under way.', {
      retryAfterSeconds: 1,
    })
  if (!answer) return undefined
  return answer.request_hash.equals(requestHash)
    ? { text: open(key, answer.answer_sealed), isReplay: true }
    : new Failure(
        'idempotency_key_reused',
        'This Idempotency-Key was used with another request: take a new one.',
      )
}

const hashesOf = ({ key, method, path, body }: IdempotentRequest) => ({
  keyHash: hashSecret(key),
  requestHash: createHash('sha256')
    .update(JSON.stringify([method, path, canonical(body)]))
    .digest(),
})

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
