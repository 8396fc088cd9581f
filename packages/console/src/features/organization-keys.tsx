import { type AccessKey, type Role, roles } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { useProject, useWhyNot } from '../api/me.ts'
import { readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { Button } from '../ui/button.tsx'
import { Confirm, FormDialog, submitProps } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Section } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret.tsx'
import { KeyTable } from './key-table.tsx'

/** Access keys that work in every project of the organization. */
export function OrganizationKeys() {
  const { organization_id } = useProject()
  const keys = useQuery(readAll('organizationKeyList', { organization_id }))
  const whyNot = useWhyNot('admin')
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState('')
  const [revoking, setRevoking] = useState<AccessKey | null>(null)
  const revoke = useAction({
    run: (key: AccessKey) => client.organizationKeyDelete({ organization_id, key_id: key.id }),
    done: (key) => `Revoked key ${key.name}`,
    invalidates: ['organizationKeyList', 'accessKeyList'],
    showsErrors: true,
  })
  return (
    <Section
      title="Organization keys"
      about="For every project of the organization, within their role."
      actions={
        <Button icon={<Icon name="plus" size={16} />} reason={whyNot} onClick={() => setCreating(true)}>
          Create organization key
        </Button>
      }
    >
      <Loaded query={keys} rows={1}>
        {(data) =>
          data.length === 0 ? (
            <p className="card px-4 py-3 text-ink-muted">No organization keys yet.</p>
          ) : (
            <KeyTable label="Organization keys" keys={data} whyNot={whyNot} onRevoke={setRevoking} />
          )
        }
      </Loaded>
      {isCreating && <CreateDialog onClose={() => setCreating(false)} onCreated={setSecret} />}
      {secret && (
        <SecretDialog
          title="New organization key"
          secret={secret}
          note="It works in every project of the organization, within its role."
          ifLost="If you lose it, revoke this key and create another."
          onClose={() => setSecret('')}
        />
      )}
      {revoking && (
        <Confirm
          isOpen
          onClose={() => setRevoking(null)}
          title={`Revoke ${revoking.name}`}
          action="Revoke key"
          {...submitProps(revoke, revoking, () => setRevoking(null))}
        >
          <p>
            Stops working immediately in every project of the organization, with the keys that it created.
            Resources created with it are kept.
          </p>
        </Confirm>
      )}
    </Section>
  )
}

function CreateDialog({ onClose, onCreated }: { onClose: () => void; onCreated: (secret: string) => void }) {
  const { organization_id } = useProject()
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('member')
  const [from, setFrom] = useState('')
  const blocks = from.split(/[\s,]+/).filter(Boolean)
  const create = useAction({
    run: () =>
      client.organizationKeyCreate({ organization_id }, { name: name.trim(), role, allowed_cidrs: blocks }),
    done: () => `Created key ${name.trim()}`,
    invalidates: ['organizationKeyList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create organization key"
      action="Create key"
      {...submitProps(create, undefined, ({ secret }) => {
        onClose()
        onCreated(secret)
      })}
      reason={name.trim() ? undefined : 'Enter a name'}
    >
      <TextField label="Name" value={name} onChange={setName} autoFocus />
      <SelectField
        label="Role"
        value={role}
        onChange={(value) => setRole(value as Role)}
        choices={roles.map((each) => ({ value: each, label: each }))}
      />
      <TextField
        label="Allowed IPs"
        value={from}
        onChange={setFrom}
        hint="Addresses or CIDR blocks, separated by commas. Empty allows any address."
      />
    </FormDialog>
  )
}
