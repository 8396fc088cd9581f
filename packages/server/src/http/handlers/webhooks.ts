import { requireFound } from '../../domain/failure.ts'
import { withResourceNames } from '../../store/compute/resource-names.ts'
import { findDelivery, findDeliveryEvent, listDeliveries } from '../../store/events/webhook-deliveries.ts'
import { findWebhook, listWebhooks, type WebhookRow } from '../../store/events/webhooks.ts'
import { deliveryDetailView, deliveryView, webhookView } from '../../views/events.ts'
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  replayDelivery,
  rotateWebhookSecret,
  testWebhook,
} from '../../webhooks/webhooks.ts'
import { emptyResponse, type Handlers } from '../context.ts'
import { page, pageById } from '../pages.ts'

const viewWithSecret = ({ row, secret }: { row: WebhookRow; secret: string }) => ({
  ...webhookView(row),
  secret,
})

export const webhookHandlers = {
  webhookList: (context) =>
    pageById(context, (...page) => listWebhooks(context.tx, context.project.projectId, ...page), webhookView),

  webhookCreate: async ({ tx, by, services, body }) =>
    viewWithSecret(await createWebhook(tx, by, services, body)),

  webhookUpdate: async ({ tx, by, services, params, body }) =>
    webhookView(await changeWebhook(tx, by, services, params.webhook_id, body)),

  webhookDelete: ({ tx, by, params }) => emptyResponse(deleteWebhook(tx, by, params.webhook_id)),

  webhookRotateSecret: async ({ tx, by, services, params }) =>
    viewWithSecret(await rotateWebhookSecret(tx, by, services, params.webhook_id)),

  webhookTest: async ({ tx, by, params }) => deliveryView(await testWebhook(tx, by, params.webhook_id)),

  async webhookDeliveryList(context) {
    const { tx, project, params, query } = context
    const { id } = requireFound('webhook', await findWebhook(tx, project.projectId, params.webhook_id))
    const read = async (before: string | null, limit: number) => {
      const beforeSeq = before === null ? null : Number(before)
      return withResourceNames(tx, await listDeliveries(tx, id, query.state ?? null, beforeSeq, limit))
    }
    return page(context, read, deliveryView, (row) => String(row.seq))
  },

  async webhookDeliveryGet({ tx, project, params }) {
    const { id } = requireFound('webhook', await findWebhook(tx, project.projectId, params.webhook_id))
    const found = requireFound('delivery', await findDelivery(tx, id, params.delivery_id))
    const [row] = await withResourceNames(tx, [found])
    return deliveryDetailView(row!, await findDeliveryEvent(tx, found.event_id))
  },

  async webhookDeliveryReplay({ tx, by, params }) {
    const row = await replayDelivery(tx, by, params.webhook_id, params.delivery_id)
    return deliveryView((await withResourceNames(tx, [row]))[0]!)
  },
} satisfies Partial<Handlers>
