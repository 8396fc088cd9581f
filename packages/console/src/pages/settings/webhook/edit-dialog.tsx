import type { Webhook } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { useProjectId } from '../../../api/me.ts'
import { projectCommands, shellQuote } from '../../../lib/shell.ts'
import { FormDialog, submitProps } from '../../../ui/dialog.tsx'
import { TextField } from '../../../ui/field.tsx'
import { EventTypesField, eventTypesProblem } from '../webhooks/event-types-field.tsx'
import { urlProblem } from '../webhooks/url.ts'

export function EditDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const projectId = useProjectId()
  const target = { project_id: projectId, webhook_id: webhook.id }
  const [url, setUrl] = useState(webhook.url)
  const isForAll = webhook.event_types.length === 0 || webhook.event_types.includes('*')
  const [chosen, setChosen] = useState<string[] | null>(isForAll ? null : webhook.event_types)
  const event_types = chosen ?? []
  const body = { url: url.trim(), event_types }
  const isChanged = body.url !== webhook.url || event_types.join() !== webhook.event_types.join()
  const save = useAction({
    run: () => client.webhookUpdate(target, body),
    done: () => 'Webhook changed',
    undo: () => () => client.webhookUpdate(target, { url: webhook.url, event_types: webhook.event_types }),
    invalidates: ['webhookList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      isWide
      onClose={onClose}
      title="Edit webhook"
      action="Save changes"
      {...submitProps(save, undefined, onClose)}
      reason={urlProblem(body.url) ?? eventTypesProblem(chosen) ?? (isChanged ? undefined : 'No changes yet')}
      commands={projectCommands(projectId, {
        cli: `slipway webhook change ${webhook.id} --url ${shellQuote(body.url)} --events ${shellQuote(event_types.join(',') || '*')}`,
        method: 'PATCH',
        path: `/webhooks/${webhook.id}`,
        body,
      })}
    >
      <TextField label="URL" type="url" value={url} onChange={setUrl} autoFocus />
      <EventTypesField value={chosen} onChange={setChosen} />
    </FormDialog>
  )
}
