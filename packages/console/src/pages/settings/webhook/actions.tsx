import type { Webhook } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { Secret } from '../../../features/webhooks/secret.tsx'
import { projectCommands } from '../../../lib/shell.ts'
import { Button } from '../../../ui/button.tsx'
import { Confirm, submitProps } from '../../../ui/dialog.tsx'
import { EditDialog } from './edit-dialog.tsx'

export function WebhookActions({ webhook }: { webhook: Webhook }) {
  const projectId = useProjectId()
  const target = { project_id: projectId, webhook_id: webhook.id }
  const whyNot = useWhyNot('admin')
  const [isEditing, setEditing] = useState(false)
  const [isDeleting, setDeleting] = useState(false)
  const [secret, setSecret] = useState('')
  const isActive = webhook.state === 'active'
  const test = useAction({
    run: () => client.webhookTest(target),
    done: () => 'Queued a test event',
    failed: () => 'Could not queue a test event',
    invalidates: ['webhookDeliveryList'],
  })
  const toggle = useAction({
    run: () => client.webhookUpdate(target, { state: isActive ? 'paused' : 'active' }),
    done: () => (isActive ? 'Webhook paused' : 'Webhook resumed'),
    failed: () => `Could not ${isActive ? 'pause' : 'resume'} the webhook`,
    undo: () => () => client.webhookUpdate(target, { state: webhook.state }),
    about: webhook.id,
    invalidates: ['webhookList'],
  })
  const rotate = useAction({
    run: async () => setSecret((await client.webhookRotateSecret(target)).secret),
    done: () => 'Secret rotated',
    failed: () => 'Could not rotate the secret',
  })
  const remove = useAction({
    run: () => client.webhookDelete(target),
    done: () => 'Webhook deleted',
    invalidates: ['webhookList'],
    showsErrors: true,
  })
  return (
    <>
      <Button reason={whyNot} onClick={() => setEditing(true)}>
        Edit
      </Button>
      <Button reason={whyNot} isBusy={test.isPending} onClick={() => test.mutate(undefined)}>
        Send test
      </Button>
      <Button reason={whyNot} isBusy={toggle.isPending} onClick={() => toggle.mutate(undefined)}>
        {isActive ? 'Pause' : 'Resume'}
      </Button>
      <Button reason={whyNot} isBusy={rotate.isPending} onClick={() => rotate.mutate(undefined)}>
        Rotate secret
      </Button>
      <Button kind="danger" reason={whyNot} onClick={() => setDeleting(true)}>
        Delete
      </Button>
      {isEditing && <EditDialog webhook={webhook} onClose={() => setEditing(false)} />}
      {secret && <Secret secret={secret} isRotated onClose={() => setSecret('')} />}
      <Confirm
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        title="Delete webhook"
        action="Delete webhook"
        commands={projectCommands(projectId, {
          cli: `slipway webhook delete ${webhook.id}`,
          method: 'DELETE',
          path: `/webhooks/${webhook.id}`,
        })}
        {...submitProps(remove, undefined, () => history.back())}
      >
        <p>Slipway will stop sending events to {webhook.url}. Pending deliveries will be dropped.</p>
      </Confirm>
    </>
  )
}
