import { type Role, type RouteResponse, roles } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useMe } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { settingsPollMs } from '../../features/fleet/poll.ts'
import { suspendColumn, useSuspension } from '../../features/fleet/suspension.tsx'
import { suspendText } from '../../features/fleet/user-actions.tsx'
import { lastSignInColumn, UserName } from '../../features/fleet/user-name.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { operatorCommands, shellQuote } from '../../lib/shell.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { CheckField, FilterInput, SelectField, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { SecretDialog } from '../../ui/secret.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'

type Row = RouteResponse<'adminUserList'>['items'][number]

export function Users() {
  const { caller } = useMe()
  const [search, setSearch] = useSearchState()
  const { q = '' } = search
  const users = useQuery({ ...readAll('adminUserList', {}), refetchInterval: settingsPollMs })
  const [isAdding, setAdding] = useState(false)
  const [invitation, setInvitation] = useState({ email: '', url: '' })
  const suspension = useSuspension<Row>({
    suspend: ({ id }) => client.adminUserUpdate({ user_id: id }, { suspended: true }),
    restore: ({ id }) => client.adminUserUpdate({ user_id: id }, { suspended: false }),
    nameOf: ({ email }) => email,
    action: 'Suspend user',
    explanationOf: () => suspendText,
    whyNot: (row) =>
      row.id === caller.id
        ? 'You cannot suspend yourself.'
        : row.state === 'invited'
          ? 'The invitation has not been accepted yet.'
          : undefined,
    commandsOf: ({ id }) =>
      operatorCommands({
        cli: `slipway admin user suspend ${id}`,
        method: 'PATCH',
        path: `/users/${id}`,
        body: { suspended: true },
      }),
    invalidates: ['adminUserList'],
  })
  return (
    <FleetPage
      actions={
        <Button kind="primary" icon={<Icon name="user-plus" size={16} />} onClick={() => setAdding(true)}>
          Add user
        </Button>
      }
    >
      <div>
        <FilterInput label="Filter by e-mail or ID" value={q} onChange={(q) => setSearch({ q })} />
      </div>
      <Loaded query={users}>
        {(data) => (
          <Table
            label="Users"
            rows={data.filter(({ email, id }) => `${email} ${id}`.toLowerCase().includes(q.toLowerCase()))}
            rowKey={(row) => row.id}
            sort={search.sort ?? ''}
            onSort={(sort) => setSearch({ sort })}
            empty={<p className="card px-4 py-3 text-ink-muted">No users match the filters.</p>}
            columns={[
              {
                key: 'email',
                title: 'E-mail',
                width: 'minmax(188px, 2fr)',
                sortBy: (row) => row.email,
                cell: (row) => (
                  <>
                    <UserName row={row} />
                    {row.id === caller.id && <span className="text-ink-muted"> (you)</span>}
                  </>
                ),
              },
              {
                key: 'state',
                title: 'State',
                width: '104px',
                cell: (row) => <StateBadge state={row.suspended ? 'suspended' : row.state} />,
              },
              {
                key: 'operator',
                title: 'Operator',
                width: '100px',
                isFoldable: true,
                cell: (row) => (row.is_operator ? 'yes' : 'no'),
              },
              lastSignInColumn,
              { ...timestampColumn('Created', 'created_at'), isFoldable: true },
              suspendColumn(suspension),
            ]}
          />
        )}
      </Loaded>
      {suspension.dialog}
      {isAdding && (
        <AddDialog
          onClose={() => setAdding(false)}
          onInvited={(email, url) => setInvitation({ email, url })}
        />
      )}
      {invitation.url && (
        <SecretDialog
          title={`Invitation link for ${invitation.email}`}
          secret={invitation.url}
          note="Send this link to the new user. Anyone with this link can use it once. It expires in 7 days."
          ifLost="To get another link, add the same address again."
          onClose={() => setInvitation({ email: '', url: '' })}
        />
      )}
    </FleetPage>
  )
}

interface AddDialogProps {
  onClose: () => void
  onInvited: (email: string, url: string) => void
}

function AddDialog({ onClose, onInvited }: AddDialogProps) {
  const organizations = useQuery(readAll('adminOrganizationList', {}))
  const [email, setEmail] = useState('')
  const [organizationId, setOrganizationId] = useState('')
  const [role, setRole] = useState<Role>('member')
  const [isOperator, setOperator] = useState(false)
  const request = {
    email: email.trim(),
    is_operator: isOperator,
    ...(organizationId && { organization_id: organizationId, role }),
  }
  const add = useAction({
    run: () => client.adminUserCreate(request),
    done: (_, { invite_url }) => (invite_url ? '' : `Added ${email.trim()}`),
    invalidates: ['adminUserList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Add user"
      action="Add user"
      {...submitProps(add, undefined, ({ invite_url }) => {
        onClose()
        onInvited(request.email, invite_url)
      })}
      reason={
        !/^\S+@\S+$/.test(email.trim())
          ? 'Enter an e-mail address'
          : !organizationId && !isOperator
            ? 'Choose an organization, or select Operator'
            : undefined
      }
      commands={operatorCommands({
        cli: `slipway admin user create ${shellQuote(request.email || 'EMAIL')}${organizationId ? ` --org ${organizationId} --role ${role}` : ''}${isOperator ? ' --operator' : ''}`,
        path: '/users',
        body: request,
      })}
    >
      <TextField
        label="E-mail"
        type="email"
        value={email}
        onChange={setEmail}
        hint="Next, you get an invitation link to send to the user."
        autoComplete="off"
        autoFocus
      />
      <div className="grid grid-cols-2 gap-4">
        <SelectField
          label="Organization"
          hint="Required unless Operator is selected."
          value={organizationId}
          onChange={setOrganizationId}
          choices={[
            { value: '', label: 'None' },
            ...(organizations.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
          ]}
        />
        <SelectField
          label="Role"
          value={role}
          disabled={!organizationId}
          onChange={(value) => setRole(value as Role)}
          choices={roles.map((each) => ({ value: each, label: each }))}
        />
      </div>
      <CheckField
        label="Operator"
        hint="Can use everything under Fleet."
        isChecked={isOperator}
        onChange={setOperator}
      />
    </FormDialog>
  )
}
