import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { projectCommands, shellQuote } from '../../../lib/shell.ts'
import { FormDialog, submitProps } from '../../../ui/dialog.tsx'
import { TextField } from '../../../ui/field.tsx'
import { EventTypesField, eventTypesProblem } from './event-types-field.tsx'
import { urlProblem } from './url.ts'

export function CreateDialog({
  projectId,
  onClose,
  onCreated,
}: {
  projectId: string
  onClose: () => void
  onCreated: (secret: string) => void
}) {
  const [url, setUrl] = useState('')
  const [chosen, setChosen] = useState<string[] | null>(null)
  const event_types = chosen ?? []
  const create = useAction({
    run: () => client.webhookCreate({ project_id: projectId }, { url: url.trim(), event_types }),
    done: () => 'Webhook created',
    invalidates: ['webhookList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      isWide
      onClose={onClose}
      title="Create webhook"
      action="Create webhook"
      {...submitProps(create, undefined, (webhook) => {
        onClose()
        onCreated(webhook.secret)
      })}
      reason={urlProblem(url.trim()) ?? eventTypesProblem(chosen)}
      commands={projectCommands(projectId, {
        cli: `slipway webhook create ${shellQuote(url.trim() || 'URL')}${
          event_types.length > 0 ? ` --events ${shellQuote(event_types.join(','))}` : ''
        }`,
        path: '/webhooks',
        body: { url: url.trim(), event_types },
        terraform: 'webhook',
      })}
    >
      <TextField
        label="URL"
        type="url"
        value={url}
        onChange={setUrl}
        placeholder="https://hooks.example.com/slipway"
        autoFocus
      />
      <EventTypesField value={chosen} onChange={setChosen} />
    </FormDialog>
  )
}
