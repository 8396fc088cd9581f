import type { SshKey } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { AddSshKey } from '../../features/add-ssh-key.tsx'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { curlCommand, projectCommands, shellQuote } from '../../lib/shell.ts'
import { Button, RowButton } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

/** The SSH keys for the project's VMs. */
export function SshKeys() {
  const projectId = useProjectId()
  const keys = useQuery(readAll('sshKeyList', { project_id: projectId }))
  const whyNot = useWhyNot('member')
  const [isAdding, setAdding] = useState(false)
  const [removing, setRemoving] = useState<SshKey | null>(null)
  const remove = useAction({
    run: (key: SshKey) => client.sshKeyDelete({ project_id: projectId, ssh_key_id: key.id }),
    done: (key) => `Removed SSH key ${key.name}`,
    invalidates: ['sshKeyList'],
    showsErrors: true,
  })
  const add = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setAdding(true)}
    >
      Add SSH key
    </Button>
  )
  return (
    <Page title="Settings" tabTitle="SSH keys" actions={add}>
      <SettingsTabs />
      <Loaded query={keys} rows={3}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No SSH keys yet"
              action={add}
              cli="slipway ssh-key create laptop"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/ssh-keys`, {
                name: 'laptop',
                public_key: 'ssh-ed25519 …',
              })}
            >
              Saved keys can be picked by name when you create a VM.
            </Empty>
          ) : (
            <Table
              label="SSH keys"
              rows={data}
              rowKey={(key) => key.id}
              columns={[
                {
                  key: 'name',
                  title: 'Name',
                  width: 'minmax(140px, 1fr)',
                  cell: (key) => <span className="font-medium">{key.name}</span>,
                },
                { key: 'type', title: 'Type', width: '150px', cell: (key) => key.type },
                {
                  key: 'fingerprint',
                  title: 'Fingerprint',
                  width: 'minmax(200px, 2fr)',
                  // The whole fingerprint must be readable, so it wraps.
                  cell: (key) => (
                    <span className="inline-flex max-w-full items-center gap-1">
                      <span className="mono min-w-0 break-all">{key.fingerprint}</span>
                      <CopyButton text={key.fingerprint} label="Copy the fingerprint" />
                    </span>
                  ),
                },
                ageColumn,
                actionColumn('100px', (key: SshKey) => (
                  <RowButton
                    verb="Remove"
                    name={key.name}
                    kind="danger"
                    reason={whyNot}
                    onClick={() => setRemoving(key)}
                  />
                )),
              ]}
            />
          )
        }
      </Loaded>
      {isAdding && <AddSshKey projectId={projectId} onClose={() => setAdding(false)} />}
      {removing && (
        <Confirm
          isOpen
          onClose={() => setRemoving(null)}
          title={`Remove SSH key ${removing.name}`}
          action="Remove key"
          commands={projectCommands(projectId, {
            cli: `slipway ssh-key delete ${shellQuote(removing.name)}`,
            method: 'DELETE',
            path: `/ssh-keys/${removing.id}`,
          })}
          {...submitProps(remove, removing, () => setRemoving(null))}
        >
          <p>
            New VMs will not be able to use this key. Existing VMs will still accept it until you remove it
            from their <span className="mono">authorized_keys</span> file.
          </p>
        </Confirm>
      )}
    </Page>
  )
}
