import { parseSshPublicKey } from '@slipway/contract/ssh-key'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { projectCommands, shellQuote } from '../lib/shell.ts'
import { FormDialog, submitProps } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { SshKeyField, trimKey } from './ssh-key-field.tsx'

/** Adds an SSH key to the project. The key's comment is the default name. */
export function AddSshKey({ projectId, onClose }: { projectId: string; onClose: () => void }) {
  const [key, setKey] = useState('')
  const [typed, setTyped] = useState<string | null>(null)
  const parsed = parseSshPublicKey(trimKey(key))
  const name = typed ?? (parsed.ok ? parsed.comment : '')
  const add = useAction({
    run: () =>
      client.sshKeyCreate({ project_id: projectId }, { name: name.trim(), public_key: trimKey(key) }),
    done: () => `Added SSH key ${name.trim()}`,
    invalidates: ['sshKeyList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Add SSH key"
      action="Add key"
      {...submitProps(add, undefined, onClose)}
      reason={!parsed.ok ? 'Paste a public key' : name.trim() ? undefined : 'Enter a name'}
      commands={projectCommands(projectId, {
        cli: `slipway ssh-key create ${shellQuote(name.trim() || 'NAME')} --file ~/.ssh/id_ed25519.pub`,
        path: '/ssh-keys',
        body: { name: name.trim(), public_key: trimKey(key) },
        terraform: 'ssh_key',
      })}
    >
      <SshKeyField label="Public key" value={key} onChange={setKey} />
      <TextField
        label="Name"
        value={name}
        onChange={setTyped}
        autoComplete="off"
        hint="A name to recognize this key by."
      />
    </FormDialog>
  )
}
