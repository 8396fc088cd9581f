import type { Tx } from '../../postgres/database.ts'
import { gathered } from '../../postgres/gathered.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

interface CallersKey {
  caller: string
  keyHash: Buffer
}

// The lock is held until the transaction ends. If another request finds it taken, the first request is still running.
// One transaction could take the same lock twice, so the list must not contain a key twice.
const lockKeys = statement<{ is_locked: boolean }, Columns<CallersKey>>(
  'idempotency_lock',
  `SELECT pg_try_advisory_xact_lock(hashtextextended(caller || ' ' || encode(key_hash, 'hex'), 42)) AS is_locked
   FROM unnest(:caller::text[], :keyHash::bytea[]) WITH ORDINALITY AS k (caller, key_hash, ordinal) ORDER BY ordinal`,
)

const findResponses = statement<StoredResponse & { caller: string; key_hash: Buffer }, Columns<CallersKey>>(
  'idempotency_find',
  `SELECT i.caller, i.key_hash, i.request_hash, i.answer_sealed
   FROM unnest(:caller::text[], :keyHash::bytea[]) AS k (caller, key_hash)
   JOIN idempotency_keys i ON i.caller = k.caller AND i.key_hash = k.key_hash
   WHERE i.created_at > slipway_now() - interval '24 hours'`,
)

const remember = statement<never, Columns<NewResponse>>(
  'idempotency_remember',
  `INSERT INTO idempotency_keys (caller, key_hash, request_hash, answer_sealed)
   SELECT * FROM unnest(:caller::text[], :keyHash::bytea[], :requestHash::bytea[], :responseSealed::bytea[])
   ON CONFLICT (caller, key_hash) DO UPDATE
   SET request_hash = excluded.request_hash, answer_sealed = excluded.answer_sealed, created_at = slipway_now()`,
)

interface StoredResponse {
  request_hash: Buffer
  answer_sealed: Buffer
}

export interface KeyState {
  /** True if the transaction holds the key's lock: no other request with this key is running. */
  isOurs: boolean
  response: StoredResponse | undefined
}

/**
 * Locks the key, then reads its response. An earlier request with the key writes its response before it
 * releases the lock.
 */
export const lockIdempotencyKey = gathered(
  async (tx: Tx, keys: CallersKey[]): Promise<KeyState[]> => {
    const wanted = columns(keys, ['caller', 'keyHash'])
    const [locked, responses] = await Promise.all([lockKeys.all(tx, wanted), findResponses.all(tx, wanted)])
    return keys.map(({ caller, keyHash }, index) => ({
      isOurs: locked[index]!.is_locked,
      response: responses.find((each) => each.caller === caller && each.key_hash.equals(keyHash)),
    }))
  },
  { claimOf: ({ caller, keyHash }) => `${caller} ${keyHash.toString('hex')}` },
)

interface NewResponse extends CallersKey {
  requestHash: Buffer
  responseSealed: Buffer
}

export const storeResponse = (tx: Tx, response: NewResponse): Promise<void> =>
  tx.enqueue(writeResponses, response)

const writeResponses = (tx: Tx, responses: NewResponse[]) =>
  remember.run(tx, columns(responses, ['caller', 'keyHash', 'requestHash', 'responseSealed']))
