import type { EventType } from '@slipway/contract'
import { Failure, invalidField, requireFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { addressGuard } from '../domain/public-address.ts'
import { sealSecret } from '../domain/secret-key.ts'
import { newWebhookSecret } from '../domain/webhook-signature.ts'
import { type ProjectRequester, requireOrganizationQuota } from '../operations/admission.ts'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { emit } from '../store/events/events.ts'
import {
  type DeliveryWithResource,
  findDelivery,
  insertDirectDelivery,
  secondsSinceSent,
} from '../store/events/webhook-deliveries.ts'
import {
  deleteWebhook as deleteWebhookRow,
  insertWebhook,
  lockWebhook,
  replaceWebhookSecret,
  updateWebhook,
  type WebhookRow,
} from '../store/events/webhooks.ts'
import { webhookView } from '../views/events.ts'
import { WebhookSender } from './sender.ts'

const secretOverlapS = 86_400
/** Limit on tests and replays of one webhook. */
const maxPerMinute = 10
/** Short, because the transaction of the request is open. Each delivery resolves the name again. */
const resolveMs = 1_000

export interface WebhookChange {
  url?: string
  event_types?: string[]
  state?: 'active' | 'paused'
}

/** The secret is returned only here and when it is rotated. */
export async function createWebhook(
  tx: Tx,
  by: ProjectRequester,
  services: Services,
  { url, event_types = [] }: WebhookChange & { url: string },
): Promise<{ row: WebhookRow; secret: string }> {
  await checkUrl(services, url)
  const secret = newWebhookSecret()
  const row = await insertWebhook(tx, {
    id: uuid(),
    projectId: by.projectId,
    url,
    eventTypes: event_types,
    sealed: sealSecret(services.secretKey, secret),
  })
  await requireOrganizationQuota(tx, by, 'webhooks')
  await emitWebhook(tx, by, 'webhook.created', row)
  return { row, secret }
}

export async function changeWebhook(
  tx: Tx,
  by: ProjectRequester,
  services: Services,
  webhookId: string,
  change: WebhookChange,
): Promise<WebhookRow> {
  // The URL is checked before the lock, because resolving the name may be slow, and deliveries wait for the
  // webhook's row.
  if (change.url !== undefined) await checkUrl(services, change.url)
  const { id } = await lockWebhookOf(tx, by, webhookId)
  const row = await updateWebhook(tx, id, change)
  await emitWebhook(tx, by, 'webhook.updated', row)
  return row
}

export async function deleteWebhook(tx: Tx, by: ProjectRequester, webhookId: string): Promise<void> {
  const row = await lockWebhookOf(tx, by, webhookId)
  await deleteWebhookRow(tx, row.id)
  await emitWebhook(tx, by, 'webhook.deleted', row)
}

/** For a day, deliveries are signed with both the old and the new secret. */
export async function rotateWebhookSecret(
  tx: Tx,
  by: ProjectRequester,
  services: Services,
  webhookId: string,
): Promise<{ row: WebhookRow; secret: string }> {
  const row = await lockWebhookOf(tx, by, webhookId)
  const secret = newWebhookSecret()
  await replaceWebhookSecret(tx, row.id, sealSecret(services.secretKey, secret), secretOverlapS)
  await emitWebhook(tx, by, 'webhook.secret_rotated', row)
  return { row, secret }
}

/** Sends a test event to this webhook only. */
export async function testWebhook(
  tx: Tx,
  by: ProjectRequester,
  webhookId: string,
): Promise<DeliveryWithResource> {
  const row = await lockWebhookOf(tx, by, webhookId)
  await limitDirectDeliveries(tx, row.id)
  const eventId = await emitWebhook(tx, by, 'webhook.test', row)
  return insertDirectDelivery(tx, row.id, eventId)
}

/** Sends the event of a delivery again. */
export async function replayDelivery(
  tx: Tx,
  by: ProjectRequester,
  webhookId: string,
  deliveryId: string,
): Promise<DeliveryWithResource> {
  const row = await lockWebhookOf(tx, by, webhookId)
  const delivery = requireFound('delivery', await findDelivery(tx, row.id, deliveryId))
  await limitDirectDeliveries(tx, row.id)
  await emitWebhook(tx, by, 'webhook.replayed', row, { delivery_id: delivery.id })
  return insertDirectDelivery(tx, row.id, delivery.event_id)
}

/** Tests and replays ignore the order of deliveries and the pauses after failures, so their number is limited. */
async function limitDirectDeliveries(tx: Tx, webhookId: string): Promise<void> {
  const agoS = await secondsSinceSent(tx, webhookId, maxPerMinute)
  if (agoS === null || agoS >= 60) return
  const retryAfterSeconds = Math.max(1, Math.ceil(60 - agoS))
  throw new Failure(
    'rate_limited',
    `Limit: ${maxPerMinute} tests and replays per minute for each webhook. Try again in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  )
}

const lockWebhookOf = async (tx: Tx, by: ProjectRequester, webhookId: string): Promise<WebhookRow> =>
  requireFound('webhook', await lockWebhook(tx, by.projectId, webhookId))

/** Returns the event's id. */
async function emitWebhook(
  tx: Tx,
  by: ProjectRequester,
  type: EventType,
  row: WebhookRow,
  more: Record<string, unknown> = {},
): Promise<string> {
  const id = uuid()
  const data = { ...webhookView(row), ...more }
  await emit(tx, { ...by, id, type, resourceType: 'webhook', resourceId: row.id, data })
  return id
}

async function checkUrl({ config }: Services, url: string): Promise<void> {
  const sender = new WebhookSender(addressGuard(config.webhooks.allowPrivateRanges))
  const problem = await sender.problemWith(url, resolveMs)
  if (problem) throw invalidField('url', problem)
}
