import type { Tx } from '../../postgres/database.ts'
import { gathered } from '../../postgres/gathered.ts'
import { statement } from '../../postgres/statement.ts'

/** Whose key, by its hash. */
export interface CallersKey {
  caller: string
  keyHash: Buffer
}

type Keys = { callers: string[]; keyHashes: Buffer[] }

// Held until the transaction ends: whoever finds it taken knows that the first request is still under way. The same
// transaction would get it twice: no key is in the list twice.
const lockKeys = statement<{ is_locked: boolean }, Keys>(
  'idempotency_lock',
  `SELECT pg_try_advisory_xact_lock(hashtextextended(caller || ' ' || encode(key_hash, 'hex'), 42)) AS is_locked
   FROM unnest(:callers::text[], :keyHashes::bytea[]) WITH ORDINALITY AS k (caller, key_hash, place) ORDER BY place`,
)

const remembered = statement<RememberedAnswer & { caller: string; key_hash: Buffer }, Keys>(
  'idempotency_find',
  `SELECT i.caller, i.key_hash, i.request_hash, i.answer_sealed
   FROM unnest(:callers::text[], :keyHashes::bytea[]) AS k (caller, key_hash)
   JOIN idempotency_keys i ON i.caller = k.caller AND i.key_hash = k.key_hash
   WHERE i.created_at > slipway_now() - interval '24 hours'`,
)

const remember = statement<never, Keys & { requestHashes: Buffer[]; answersSealed: Buffer[] }>(
  'idempotency_remember',
  `INSERT INTO idempotency_keys (caller, key_hash, request_hash, answer_sealed)
   SELECT * FROM unnest(:callers::text[], :keyHashes::bytea[], :requestHashes::bytea[], :answersSealed::bytea[])
   ON CONFLICT (caller, key_hash) DO UPDATE
   SET request_hash = excluded.request_hash, answer_sealed = excluded.answer_sealed, created_at = slipway_now()`,
)

export interface RememberedAnswer {
  request_hash: Buffer
  answer_sealed: Buffer
}

/** What is known of a key: `isOurs` until the transaction ends, unless another request with it is under way. */
export interface KeyState {
  isOurs: boolean
  answer: RememberedAnswer | undefined
}

const columnsOf = (keys: CallersKey[]): Keys => ({
  callers: keys.map(({ caller }) => caller),
  keyHashes: keys.map(({ keyHash }) => keyHash),
})

/** Locks the key, then looks for its answer: a request that had the key before has left its answer by then. */
export const openIdempotencyKey = gathered(
  async (tx: Tx, keys: CallersKey[]): Promise<KeyState[]> => {
    const columns = columnsOf(keys)
    const [locked, answers] = await Promise.all([lockKeys.all(tx, columns), remembered.all(tx, columns)])
    return keys.map(({ caller, keyHash }, index) => ({
      isOurs: locked[index]!.is_locked,
      answer: answers.find((each) => each.caller === caller && each.key_hash.equals(keyHash)),
    }))
  },
  { claimOf: ({ caller, keyHash }) => `${caller} ${keyHash.toString('hex')}` },
)

interface NewAnswer extends CallersKey {
  requestHash: Buffer
  answerSealed: Buffer
}

export const rememberAnswer = (tx: Tx, answer: NewAnswer): Promise<void> => tx.enqueue(writeAnswers, answer)

async function writeAnswers(tx: Tx, answers: NewAnswer[]): Promise<void> {
  await remember.run(tx, {
    ...columnsOf(answers),
    requestHashes: answers.map(({ requestHash }) => requestHash),
    answersSealed: answers.map(({ answerSealed }) => answerSealed),
  })
}
