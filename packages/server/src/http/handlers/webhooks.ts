import { Failure, invalidField, notFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { newWebhookSecret } from '../../domain/webhook-signature.ts'
import { findDelivery, insertDirectDelivery, listDeliveries } from '../../store/events/webhook-deliveries.ts'
import {
  countWebhooks,
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  lockWebhook,
  replaceWebhookSecret,
  updateWebhook,
  type WebhookRow,
} from '../../store/events/webhooks.ts'
import { deliveryView, webhookView } from '../../views/events.ts'
import { addressGuard } from '../../webhooks/public-address.ts'
import { WebhookSender } from '../../webhooks/sender.ts'
import type { Context, Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

const mostWebhooks = 50
const secretOverlapS = 86_400
/** The transaction of the request is open meanwhile. A name without an answer is looked up again at each delivery. */
const resolveMs = 1_000

type ChangeRoutes =
  | 'webhookUpdate'
  | 'webhookDelete'
  | 'webhookTest'
  | 'webhookRotateSecret'
  | 'webhookDeliveryReplay'

export const webhookHandlers: Handlers<
  'webhookList' | 'webhookCreate' | 'webhookDeliveryList' | ChangeRoutes
> = {
  async webhookList({ tx, project, query }) {
    const list = `webhooks ${project.projectId}`
    const limit = pageLimit(query)
    const before = readPageToken(list, query.page_token)
    const rows = await listWebhooks(tx, project.projectId, before, limit + 1)
    return toPage(list, rows, limit, (row) => row.id, webhookView)
  },

  async webhookCreate(context) {
    const { tx, project, body } = context
    await checkUrl(context, body.url)
    checkEventTypes(body.event_types)
    if ((await countWebhooks(tx, project.projectId)) >= mostWebhooks)
      throw new Failure('quota_exceeded', `quota exceeded: a project has at most ${mostWebhooks} webhooks.`)
    const secret = newWebhookSecret()
    const row = await insertWebhook(tx, {
      id: uuid(),
      projectId: project.projectId,
      url: body.url,
      eventTypes: body.event_types ?? [],
      secret,
    })
    await tell(context, 'webhook.created', row)
    return { ...webhookView(row), secret }
  },

  async webhookUpdate(context) {
    const { tx, body } = context
    const { id } = await lockOwn(context)
    if (body.url !== undefined) await checkUrl(context, body.url)
    checkEventTypes(body.event_types)
    const row = await updateWebhook(tx, id, body)
    await tell(context, 'webhook.updated', row)
    return webhookView(row)
  },

  async webhookDelete(context) {
    const row = await lockOwn(context)
    await deleteWebhook(context.tx, row.id)
    await tell(context, 'webhook.deleted', row)
    return {}
  },

  async webhookRotateSecret(context) {
    const row = await lockOwn(context)
    const secret = newWebhookSecret()
    await replaceWebhookSecret(context.tx, row.id, secret, secretOverlapS)
    await tell(context, 'webhook.secret_rotated', row)
    return { ...webhookView(row), secret }
  },

  async webhookTest(context) {
    const row = await lockOwn(context)
    const eventId = await tell(context, 'webhook.test', row)
    return deliveryView(await insertDirectDelivery(context.tx, row.id, eventId))
  },

  async webhookDeliveryList({ tx, project, params, query }) {
    const webhook = await findWebhook(tx, project.projectId, params.webhook_id)
    if (!webhook) throw notFound('webhook')
    const list = `deliveries ${webhook.id}`
    const limit = pageLimit(query)
    const before = readPageToken(list, query.page_token)
    const rows = await listDeliveries(tx, webhook.id, before === null ? null : Number(before), limit + 1)
    return toPage(list, rows, limit, (row) => String(row.seq), deliveryView)
  },

  async webhookDeliveryReplay(context) {
    const { tx, params } = context
    const row = await lockOwn(context)
    const delivery = await findDelivery(tx, row.id, params.delivery_id)
    if (!delivery) throw notFound('delivery')
    await tell(context, 'webhook.replayed', row, { delivery_id: delivery.id })
    return deliveryView(await insertDirectDelivery(tx, row.id, delivery.event_id))
  },
}

async function lockOwn({ tx, project, params }: Context<ChangeRoutes>): Promise<WebhookRow> {
  const row = await lockWebhook(tx, project.projectId, params.webhook_id)
  if (!row) throw notFound('webhook')
  return row
}

/** The audit event's id. */
async function tell(
  context: Context<ChangeRoutes | 'webhookCreate'>,
  type: string,
  row: WebhookRow,
  more: Record<string, unknown> = {},
): Promise<string> {
  const id = uuid()
  const data = { ...webhookView(row), ...more }
  await context.audit({ id, type, resourceType: 'webhook', resourceId: row.id, data })
  return id
}

async function checkUrl(
  { services }: Context<'webhookCreate' | 'webhookUpdate'>,
  url: string,
): Promise<void> {
  const sender = new WebhookSender(addressGuard(services.config.webhooks.allowPrivateRanges))
  const objection = await sender.objectionTo(url, resolveMs)
  if (objection) throw invalidField('url', objection)
}

function checkEventTypes(types: string[] = []): void {
  const index = types.findIndex((type) => !/^(\*|[a-z_]+(\.[a-z_]+)*(\.\*)?)$/.test(type))
  if (index >= 0)
    throw invalidField(`event_types/${index}`, 'must be an event type, such as vm.running, or vm.*')
}
