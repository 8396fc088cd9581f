import type { VmState } from '@slipway/contract'
import type { Queryable } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface ConsoleTicket {
  session_id: string
  project_id: string
  vm_id: string
  mode: 'read' | 'write'
  is_forced: boolean
  bearer_digest: string
  is_key: boolean
}

const insert = statement<{ expires_at: Date }, NewTicket>(
  'console_ticket_insert',
  `INSERT INTO console_tickets (hash, session_id, project_id, vm_id, mode, is_forced, bearer_digest, is_key, expires_at)
   VALUES (:hash, :sessionId, :projectId, :vmId, :mode, :isForced, :bearerDigest, :isKey,
           slipway_now() + :lifeS * interval '1 second') RETURNING expires_at`,
)

interface NewTicket {
  hash: Buffer
  sessionId: string
  projectId: string
  vmId: string
  mode: ConsoleTicket['mode']
  isForced: boolean
  bearerDigest: string
  isKey: boolean
  lifeS: number
}

/** A ticket works once: if two requests redeem it at the same time, only one of them finds it. */
export const redeemTicket = statement<ConsoleTicket, { hash: Buffer }>(
  'console_ticket_redeem',
  `WITH redeemed AS (DELETE FROM console_tickets WHERE hash = :hash RETURNING *)
   SELECT session_id, project_id, vm_id, mode, is_forced, bearer_digest, is_key FROM redeemed
   WHERE expires_at > slipway_now()`,
).oneBy('hash')

// If the process of a session dies, its lease expires, and another session can take the console.
const take = statement<{ session_id: string }, WriterParams & { isForced: boolean; leaseS: number }>(
  'console_take',
  `INSERT INTO console_sessions AS s (vm_id, session_id, holder, lease_until)
   VALUES (:vmId, :sessionId, :holder, slipway_now() + :leaseS * interval '1 second')
   ON CONFLICT (vm_id) DO UPDATE SET session_id = excluded.session_id, holder = excluded.holder,
                                     lease_until = excluded.lease_until
     WHERE :isForced OR s.lease_until <= slipway_now()
   RETURNING session_id`,
)

interface WriterParams {
  vmId: string
  sessionId: string
  holder: string
}

/** Returns false if another session has the console. */
export const takeConsole = async (
  db: Queryable,
  writer: WriterParams & { isForced: boolean; leaseS: number },
): Promise<boolean> => (await take.one(db, writer)) !== undefined

export const renewConsole = statement<never, { vmId: string; sessionId: string; leaseS: number }>(
  'console_renew',
  `UPDATE console_sessions SET lease_until = slipway_now() + :leaseS * interval '1 second'
   WHERE vm_id = :vmId AND session_id = :sessionId`,
).runBy('vmId', 'sessionId', 'leaseS')

export const leaveConsole = statement<never, { vmId: string; sessionId: string }>(
  'console_leave',
  'DELETE FROM console_sessions WHERE vm_id = :vmId AND session_id = :sessionId',
).runBy('vmId', 'sessionId')

/** The session that may write to the console of a VM now. */
export const findWriter = statement<{ holder: string }, { vmId: string }>(
  'console_writer',
  'SELECT holder FROM console_sessions WHERE vm_id = :vmId AND lease_until > slipway_now()',
).oneBy('vmId')

/** The state of the VM, and the session that may write; undefined if the VM is deleted. */
export const findConsoleState = statement<{ state: VmState; writer_id: string | null }, { vmId: string }>(
  'console_state',
  `SELECT v.state, s.session_id AS writer_id FROM vms v LEFT JOIN console_sessions s ON s.vm_id = v.id
   WHERE v.id = :vmId AND v.deleted_at IS NULL`,
).oneBy('vmId')

export const insertTicket = async (db: Queryable, ticket: NewTicket): Promise<Date> =>
  (await insert.one(db, ticket))!.expires_at
