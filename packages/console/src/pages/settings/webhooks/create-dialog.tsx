import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { FormDialog, submitting } from '../../../ui/dialog.tsx'
import { TextField } from '../../../ui/field.tsx'

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
  const [types, setTypes] = useState('')
  const event_types = types.split(/[\s,]+/).filter(Boolean)
  const create = useAction({
    run: () => client.webhookCreate({ project_id: projectId }, { url: url.trim(), event_types }),
    done: () => 'Created the webhook',
    touches: ['webhookList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create webhook"
      action="Create webhook"
      {...submitting(create, undefined, (webhook) => {
        onClose()
        onCreated(webhook.secret)
      })}
      reason={
        /^https?:\/\/\S+$/.test(url.trim()) ? undefined : 'Give a URL that begins with https:// or http://'
      }
    >
      <TextField
        label="URL"
        type="url"
        value={url}
        onChange={setUrl}
        placeholder="https://hooks.example.com/slipway"
        autoFocus
      />
      <TextField
        label="Event types"
        value={types}
        onChange={setTypes}
        placeholder="all"
        hint="vm.running, operation.*; empty means all."
        isMono
      />
    </FormDialog>
  )
}
