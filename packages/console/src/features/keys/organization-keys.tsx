import { type AccessKey, type Role, roles } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProject, useRole, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { organizationCommands, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Section } from '../../ui/page.tsx'
import { KeyFields, keyOptions, useKeyDraft } from './fields.tsx'
import { type CreatedKey, KeySecret } from './secret.tsx'
import { KeyTable } from './table.tsx'

/** Access keys that work in every project of the organization. */
export function OrganizationKeys() {
  const { organization_id } = useProject()
  const keys = useQuery(readAll('organizationKeyList', { organization_id }))
  const whyNot = useWhyNot('admin')
  const [isCreating, setCreating] = useState(false)
  const [created, setCreated] = useState<CreatedKey | null>(null)
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
      about="For programs and the CLI, in every project of the organization. A key has one of the roles that members have."
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
      {isCreating && <CreateDialog onClose={() => setCreating(false)} onCreated={setCreated} />}
      {created && (
        <KeySecret
          created={created}
          title={`New organization key ${created.name}`}
          note="The key works in every project of the organization, with the rights of its role."
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
          commands={organizationCommands(organization_id, {
            cli: `slipway org key delete ${shellQuote(revoking.name)}`,
            method: 'DELETE',
            path: `/access-keys/${revoking.id}`,
          })}
        >
          <p>
            The key and the keys that it created will immediately stop working in every project of the
            organization. Resources created with them will be kept.
          </p>
        </Confirm>
      )}
    </Section>
  )
}

function CreateDialog({
  onClose,
  onCreated,
}: {
  onClose: () => void
  onCreated: (created: CreatedKey) => void
}) {
  const { organization_id } = useProject()
  const mine = useRole(organization_id)
  const draft = useKeyDraft(rolesUpTo(mine))
  const create = useAction({
    run: () => client.organizationKeyCreate({ organization_id }, draft.request()),
    done: () => `Created key ${draft.name.trim()}`,
    invalidates: ['organizationKeyList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      isWide
      onClose={onClose}
      title="Create organization key"
      action="Create key"
      {...submitProps(create, undefined, (created) => {
        onClose()
        onCreated(created)
      })}
      reason={draft.problem}
      commands={organizationCommands(organization_id, {
        cli: `slipway org key create ${keyOptions(draft)}`,
        path: '/access-keys',
        body: draft.request(),
      })}
    >
      <KeyFields draft={draft} />
    </FormDialog>
  )
}

/** A key cannot have a higher role than the user who creates it. */
const rolesUpTo = (mine: Role | ''): readonly [Role, ...Role[]] =>
  roles.slice(0, mine === '' ? roles.length : roles.indexOf(mine) + 1) as [Role, ...Role[]]
