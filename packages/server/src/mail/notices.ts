import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { findEventBounds } from '../store/events/events.ts'
import {
  listNotices,
  lockMailCursor,
  moveMailCursor,
  type NoticeRow,
  takeAlertMail,
} from '../store/events/mails.ts'
import { queueMail } from './queue.ts'

const eventsAtOnce = 5_000

const noteOf = ({ note }: Record<string, unknown>) => (note ? ` Operator's note: ${note}` : '')

/** The event types about which owners, admins and the additional recipients get e-mail. */
const texts: Record<string, (notice: NoticeRow) => { subject: string; text: string }> = {
  'budget.threshold_reached': ({ data, organization_name }) => ({
    subject: `Slipway: ${data.threshold_percent}% of a budget spent`,
    text: `The project ${data.name} of ${organization_name} has spent ${data.spent_usd} of ${data.monthly_usd} US dollars this month (${data.threshold_percent}%).${data.hard_stop ? ' At 100%, nothing that costs money can be created.' : ''}`,
  }),
  'quota_request.approved': ({ data, organization_name }) => ({
    subject: 'Slipway: a quota request was approved',
    text: `The request of ${organization_name} for the quota ${data.name} was approved. The new limit is ${data.max}.${noteOf(data)}`,
  }),
  'quota_request.rejected': ({ data, organization_name }) => ({
    subject: 'Slipway: a quota request was rejected',
    text: `The request of ${organization_name} to raise the quota ${data.name} to ${data.max} was rejected.${noteOf(data)}`,
  }),
  'organization.payment_declined': ({ organization_name }) => ({
    subject: 'Slipway: a payment was declined',
    text: `The payment method of ${organization_name} was declined. Until it is replaced, nothing that costs money can be created. Running VMs are not affected.`,
  }),
  'organization.payment_removed': ({ organization_name }) => ({
    subject: 'Slipway: payment method removed',
    text: `${organization_name} no longer has a payment method. Until one is added, nothing that costs money can be created. Running VMs are not affected.`,
  }),
}

/** Says why an address gets the e-mail, because an additional recipient may not know the organization. */
const reasonOf = ({ organization_name }: NoticeRow) =>
  `You get this e-mail because you are an owner or admin of ${organization_name} on Slipway, or because one of them listed this address for alerts.`

/**
 * The additional addresses are not confirmed, so an organization can send them only a limited number of
 * alerts per day.
 */
async function recipientsOf(tx: Tx, notice: NoticeRow): Promise<string[]> {
  const { recipients, alert_emails, organization_id } = notice
  const others = alert_emails.filter((email) => !recipients.includes(email))
  const maySend = others.length > 0 && (await takeAlertMail(tx, organization_id))
  return maySend ? [...recipients, ...others] : recipients
}

/**
 * Reads the events with a cursor and queues e-mail about some of them. The cursor moves in the same
 * transaction, so each event is handled once, even if several processes run this.
 */
export async function queueNotices(services: Services): Promise<void> {
  await services.database.transaction(async (tx) => {
    const cursor = await lockMailCursor(tx)
    if (!cursor) return
    const after = cursor.position ?? (await findEventBounds(tx)).last
    const { rows, end } = await listNotices(tx, after, eventsAtOnce, Object.keys(texts))
    for (const notice of rows) {
      const { subject, text } = texts[notice.type]!(notice)
      for (const to of await recipientsOf(tx, notice))
        await queueMail(services, tx, { to, subject, text: `${text}\n\n${reasonOf(notice)}` })
    }
    if (cursor.position !== end) await moveMailCursor(tx, end)
  })
}
