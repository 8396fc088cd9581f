import type { Services } from '../services.ts'
import { findEventBounds } from '../store/events/events.ts'
import { listNotices, lockMailCursor, moveMailCursor, type NoticeRow } from '../store/events/mails.ts'
import { queueMail } from './queue.ts'

const batch = 5_000

/** What owners and admins are told of, by the type of its event. */
const texts: Record<string, (notice: NoticeRow) => { subject: string; text: string }> = {
  'budget.threshold_reached': ({ data, organization_name }) => ({
    subject: `Slipway: ${data.threshold_percent} % of a budget is spent`,
    text: `The project ${data.name} of ${organization_name} has spent ${data.spent_usd} of ${data.monthly_usd} US dollars this month (${data.threshold_percent} %).${data.hard_stop ? ' At 100 % nothing that costs money can be created.' : ''}`,
  }),
  'organization.payment_declined': ({ organization_name }) => ({
    subject: 'Slipway: a payment was declined',
    text: `The payment method of ${organization_name} was declined. Until it is replaced nothing that costs money can be created; what runs goes on.`,
  }),
  'organization.payment_removed': ({ organization_name }) => ({
    subject: 'Slipway: the payment method is gone',
    text: `${organization_name} has no payment method any more. Until there is one nothing that costs money can be created; what runs goes on.`,
  }),
}

/**
 * Follows the events by a cursor and queues a mail for each that somebody should hear of. The cursor moves in the same
 * transaction: none is left out or told twice, however many processes do this.
 */
export async function queueNotices(services: Services): Promise<void> {
  await services.database.transaction(async (tx) => {
    const cursor = await lockMailCursor(tx)
    if (!cursor) return
    const after = cursor.position ?? (await findEventBounds(tx)).last
    const { rows, end } = await listNotices(tx, after, batch, Object.keys(texts))
    for (const notice of rows)
      for (const to of notice.recipients)
        await queueMail(services, tx, { to, ...texts[notice.type]!(notice) })
    if (cursor.position !== end) await moveMailCursor(tx, end)
  })
}
