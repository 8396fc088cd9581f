import type { AccessKey } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { KeyTable } from '../../features/key-table.tsx'
import { OrganizationKeys } from '../../features/organization-keys.tsx'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { curlCommand } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page, Section } from '../../ui/page.tsx'
import { SecretDialog } from '../../ui/secret.tsx'

export function AccessKeys() {
  const projectId = useProjectId()
  const keys = useQuery(readAll('accessKeyList', { project_id: projectId }))
  const whyNot = useWhyNot('admin')
  const [isCreating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<AccessKey | null>(null)
  const [secret, setSecret] = useState('')
  const revoke = useAction({
    run: (key: AccessKey) => client.accessKeyDelete({ project_id: projectId, key_id: key.id }),
    done: (key) => `Revoked key ${key.name}`,
    invalidates: ['accessKeyList'],
    showsErrors: true,
  })
  const create = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setCreating(true)}
    >
      Create key
    </Button>
  )
  return (
    <Page title="Settings">
      <SettingsTabs />
      <Section
        title="Project keys"
        about="For programs and the command line, in this project only."
        actions={create}
      >
        <Loaded query={keys} rows={3}>
          {(data) =>
            data.length === 0 ? (
              <Empty
                title="No access keys yet"
                action={create}
                cli="slipway key create ci --role write"
                curl={curlCommand('POST', `/v0.1/projects/${projectId}/access-keys`, {
                  name: 'ci',
                  role: 'write',
                })}
              >
                A program with a key can do what the role of the key allows, until you revoke the key.
              </Empty>
            ) : (
              <KeyTable label="Access keys" keys={data} whyNot={whyNot} onRevoke={setRevoking} />
            )
          }
        </Loaded>
      </Section>
      <OrganizationKeys />
      {isCreating && (
        <CreateDialog projectId={projectId} onClose={() => setCreating(false)} onCreated={setSecret} />
      )}
      {secret && (
        <SecretDialog
          title="New access key"
          secret={secret}
          note="Send it as Authorization: Bearer …, or use it with slipway login --key."
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
          <p>Stops working immediately. Its VMs are kept.</p>
        </Confirm>
      )}
    </Page>
  )
}

const expiryText: Record<string, string> = {
  '': 'Never',
  '1': 'In 1 day',
  '30': 'In 30 days',
  '90': 'In 90 days',
  '365': 'In 1 year',
}
const dayMs = 86_400_000

function CreateDialog({
  projectId,
  onClose,
  onCreated,
}: {
  projectId: string
  onClose: () => void
  onCreated: (secret: string) => void
}) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<'read' | 'write'>('write')
  const [days, setDays] = useState('')
  const create = useAction({
    run: () =>
      client.accessKeyCreate(
        { project_id: projectId },
        {
          name: name.trim(),
          role,
          ...(days && { expires_at: new Date(Date.now() + Number(days) * dayMs).toISOString() }),
        },
      ),
    done: () => `Created key ${name.trim()}`,
    invalidates: ['accessKeyList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create access key"
      action="Create key"
      {...submitProps(create, undefined, ({ secret }) => {
        onClose()
        onCreated(secret)
      })}
      reason={name.trim() ? undefined : 'Enter a name'}
    >
      <TextField label="Name" value={name} onChange={setName} hint="What is this key for?" autoFocus />
      <SelectField
        label="Role"
        value={role}
        onChange={(value) => setRole(value as typeof role)}
        choices={[
          { value: 'write', label: 'Read and write' },
          { value: 'read', label: 'Read only' },
        ]}
      />
      <SelectField
        label="Expires"
        value={days}
        onChange={setDays}
        choices={Object.entries(expiryText)
          .sort(([a], [b]) => Number(a) - Number(b))
          .map(([value, label]) => ({ value, label }))}
      />
    </FormDialog>
  )
}
