import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface MailRow {
  id: string
  recipient: string
  sealed: Buffer
  attempts: number
}

export const insertMail = statement<never, { id: string; recipient: string; sealed: Buffer }, Tx>(
  'mail_insert',
  'INSERT INTO mails (id, recipient, sealed) VALUES (:id, :recipient, :sealed)',
).run

/**
 * Claims mails that are due, and counts the attempt before it is made. The claim also sets the time of the next
 * attempt, which another worker makes if this one dies.
 */
export const claimMails = statement<MailRow, { limit: number }>(
  'mail_claim',
  `UPDATE mails SET attempts = attempts + 1, next_attempt_at = slipway_now() + interval '1 minute' * power(2, attempts)
   WHERE id IN (SELECT id FROM mails WHERE next_attempt_at <= slipway_now()
                ORDER BY next_attempt_at LIMIT :limit FOR UPDATE SKIP LOCKED)
   RETURNING id, recipient, sealed, attempts`,
).allBy('limit')

export const deleteMail = statement<never, { id: string }>(
  'mail_delete',
  'DELETE FROM mails WHERE id = :id',
).runBy('id')

/** Returns undefined while another process holds the lock. */
export const lockMailCursor = statement<{ position: number | null }, void, Tx>(
  'mail_cursor_lock',
  'SELECT position FROM mail_cursor FOR UPDATE SKIP LOCKED',
).one

export const moveMailCursor = statement<never, { position: number }, Tx>(
  'mail_cursor_move',
  'UPDATE mail_cursor SET position = :position',
).runBy('position')

export interface NoticeRow {
  type: string
  data: Record<string, unknown>
  organization_name: string
  organization_id: string
  /** Owners and admins who can sign in. */
  recipients: string[]
  /** The additional recipients of the organization's alerts. */
  alert_emails: string[]
}

const maxAlertMailsPerDay = 20
const countAlertMail = statement<never, { organizationId: string }, Tx>(
  'mail_count_alert',
  `UPDATE organizations SET alert_mails_on = (slipway_now() AT TIME ZONE 'UTC')::date,
          alert_mails = CASE WHEN alert_mails_on = (slipway_now() AT TIME ZONE 'UTC')::date THEN alert_mails + 1 ELSE 1 END
   WHERE id = :organizationId
     AND (alert_mails_on IS DISTINCT FROM (slipway_now() AT TIME ZONE 'UTC')::date OR alert_mails < ${maxAlertMailsPerDay})`,
)

/**
 * Counts an alert for the additional recipients. Returns false if the organization has reached today's limit.
 */
export const takeAlertMail = async (tx: Tx, organizationId: string) =>
  (await countAlertMail.run(tx, { organizationId })) === 1

const batchEnd = statement<{ position: number | null }, { after: number; limit: number }>(
  'mail_batch_end',
  `SELECT max(position) AS position
   FROM (SELECT position FROM events WHERE position > :after ORDER BY position LIMIT :limit) e`,
)

interface Batch {
  after: number
  end: number
  limit: number
  types: readonly string[]
}

const notices = statement<NoticeRow, Batch>(
  'mail_notices',
  `SELECT e.type, e.data, o.name AS organization_name,
          ARRAY(SELECT DISTINCT u.email FROM memberships m JOIN users u ON u.id = m.user_id
                WHERE m.organization_id = o.id AND m.role IN ('owner', 'admin')
                  AND u.suspended_at IS NULL AND u.email <> '') AS recipients,
          o.id AS organization_id, o.alert_emails
   FROM (SELECT * FROM events WHERE position > :after ORDER BY position LIMIT :limit) e LEFT JOIN projects p ON p.id = e.project_id
   JOIN organizations o ON o.id = coalesce(e.organization_id, p.organization_id)
   WHERE e.position <= :end AND e.type = ANY (:types::text[])
   ORDER BY e.position`,
)

/**
 * Lists the events of these types among the next `limit` events, with their recipients. Also returns the
 * position of the last event that was read.
 */
export async function listNotices(
  tx: Tx,
  after: number,
  limit: number,
  types: readonly string[],
): Promise<{ rows: NoticeRow[]; end: number }> {
  const end = (await batchEnd.one(tx, { after, limit }))?.position ?? after
  // Events that got positions in the meantime belong to the next batch.
  return { rows: end === after ? [] : await notices.all(tx, { after, end, limit, types }), end }
}
