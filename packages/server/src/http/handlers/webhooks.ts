import { notFound } from '../../domain/failure.ts'
import { withResourceNames } from '../../store/compute/resource-names.ts'
import { listDeliveries } from '../../store/events/webhook-deliveries.ts'
import { findWebhook, listWebhooks } from '../../store/events/webhooks.ts'
import { deliveryView, webhookView } from '../../views/events.ts'
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  replayDelivery,
  rotateWebhookSecret,
  testWebhook,
} from '../../webhooks/webhooks.ts'
import type { Handlers } from '../context.ts'
import { page, pageById } from '../pages.ts'

export const webhookHandlers: Handlers<
  | 'webhookList'
  | 'webhookCreate'
  | 'webhookUpdate'
  | 'webhookDelete'
  | 'webhookTest'
  | 'webhookRotateSecret'
  | 'webhookDeliveryList'
  | 'webhookDeliveryReplay'
> = {
  webhookList(context) {
    const { tx, project } = context
    const read = (before: string | null, limit: number) => listWebhooks(tx, project.projectId, before, limit)
    return pageById(context, read, webhookView)
  },

  async webhookCreate({ tx, by, services, body }) {
    const { row, secret } = await createWebhook(tx, by, services, body)
    return { ...webhookView(row), secret }
  },

  webhookUpdate: async ({ tx, by, services, params, body }) =>
    webhookView(await changeWebhook(tx, by, services, params.webhook_id, body)),

  async webhookDelete({ tx, by, params }) {
    await deleteWebhook(tx, by, params.webhook_id)
    return {}
  },

  async webhookRotateSecret({ tx, by, services, params }) {
    const { row, secret } = await rotateWebhookSecret(tx, by, services, params.webhook_id)
    return { ...webhookView(row), secret }
  },

  webhookTest: async ({ tx, by, params }) => deliveryView(await testWebhook(tx, by, params.webhook_id)),

  async webhookDeliveryList(context) {
    const { tx, project, params } = context
    const webhook = await findWebhook(tx, project.projectId, params.webhook_id)
    if (!webhook) throw notFound('webhook')
    const read = async (before: string | null, limit: number) =>
      withResourceNames(
        tx,
        await listDeliveries(tx, webhook.id, before === null ? null : Number(before), limit),
      )
    return page(context, read, deliveryView, (row) => String(row.seq))
  },

  async webhookDeliveryReplay({ tx, by, params }) {
    const row = await replayDelivery(tx, by, params.webhook_id, params.delivery_id)
    return deliveryView((await withResourceNames(tx, [row]))[0]!)
  },
}
