import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { webhookChange } from './change.ts'
import { webhookCreate } from './create.ts'
import { webhookDeliveries } from './deliveries.ts'
import { webhookDelivery } from './delivery.ts'
import { webhookListen } from './listen.ts'
import { webhookPause, webhookResume } from './pause.ts'
import { webhookReplay } from './replay.ts'
import { webhooks } from './resource.ts'
import { webhookRotateSecret } from './rotate-secret.ts'
import { webhookTest } from './test.ts'

export const webhook: GroupSpec = {
  name: 'webhook',
  summary: 'webhooks and their deliveries',
  commands: [
    listCommand(webhooks),
    webhookCreate,
    webhookChange,
    webhookPause,
    webhookResume,
    deleteCommand(webhooks, async (cli, webhook_id) => {
      await cli.client.webhookDelete({ project_id: await cli.project(), webhook_id })
      return {}
    }),
    webhookListen,
    webhookDeliveries,
    webhookDelivery,
    webhookReplay,
    webhookTest,
    webhookRotateSecret,
  ],
}
