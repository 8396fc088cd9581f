import type { AccessKey } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { KeyFields, keyOptions, useKeyDraft } from '../../features/keys/fields.tsx'
import { OrganizationKeys } from '../../features/keys/organization-keys.tsx'
import { type CreatedKey, KeySecret } from '../../features/keys/secret.tsx'
import { KeyTable } from '../../features/keys/table.tsx'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { curlCommand, projectCommands, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page, Section } from '../../ui/page.tsx'

export function AccessKeys() {
  const projectId = useProjectId()
  const keys = useQuery(readAll('accessKeyList', { project_id: projectId }))
  const whyNot = useWhyNot('admin')
  const [isCreating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<AccessKey | null>(null)
  const [created, setCreated] = useState<CreatedKey | null>(null)
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
      Create project key
    </Button>
  )
  return (
    <Page title="Settings" tabTitle="Access keys">
      <SettingsTabs />
      <Section
        title="Project keys"
        about="For programs and the CLI, in this project only. With the role write, a key can also read."
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
                A program with a key can do whatever the key’s role allows, until you revoke the key.
              </Empty>
            ) : (
              <KeyTable label="Access keys" keys={data} whyNot={whyNot} onRevoke={setRevoking} />
            )
          }
        </Loaded>
      </Section>
      <OrganizationKeys />
      {isCreating && (
        <CreateDialog projectId={projectId} onClose={() => setCreating(false)} onCreated={setCreated} />
      )}
      {created && (
        <KeySecret
          created={created}
          title={`New access key ${created.name}`}
          note={
            <>
              Send the key as <span className="mono">Authorization: Bearer …</span>, or use it with{' '}
              <span className="mono whitespace-nowrap">slipway login --access-key</span>.
            </>
          }
          onClose={() => setCreated(null)}
        />
      )}
      {revoking && (
        <Confirm
          isOpen
          onClose={() => setRevoking(null)}
          title={`Revoke key ${revoking.name}`}
          action="Revoke key"
          {...submitProps(revoke, revoking, () => setRevoking(null))}
          commands={projectCommands(projectId, {
            cli: `slipway key delete ${shellQuote(revoking.name)}`,
            method: 'DELETE',
            path: `/access-keys/${revoking.id}`,
          })}
        >
          <p>The key will stop working immediately. VMs that it created will be kept.</p>
        </Confirm>
      )}
    </Page>
  )
}

function CreateDialog({
  projectId,
  onClose,
  onCreated,
}: {
  projectId: string
  onClose: () => void
  onCreated: (created: CreatedKey) => void
}) {
  const draft = useKeyDraft(['read', 'write'])
  const create = useAction({
    run: () => client.accessKeyCreate({ project_id: projectId }, draft.request()),
    done: () => `Created key ${draft.name.trim()}`,
    invalidates: ['accessKeyList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create access key"
      action="Create key"
      {...submitProps(create, undefined, (created) => {
        onClose()
        onCreated(created)
      })}
      reason={draft.problem}
      commands={projectCommands(projectId, {
        cli: `slipway key create ${keyOptions(draft)}`,
        path: '/access-keys',
        body: draft.request(),
        terraform: 'access_key',
      })}
    >
      <KeyFields draft={draft} />
    </FormDialog>
  )
}
