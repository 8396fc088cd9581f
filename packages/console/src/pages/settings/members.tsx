import { type AccessKey, type Member, type Role, roles } from '@slipway/sdk'
import { useQueries } from '@tanstack/react-query'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useMe, useProject, useSendsMail, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { plural } from '../../lib/format.ts'
import { organizationCommands, shellQuote } from '../../lib/shell.ts'
import { Button, RowButton } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
import { CheckField, Select, SelectField, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Page } from '../../ui/page.tsx'
import { SecretDialog } from '../../ui/secret.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'

const roleText: Record<Role, string> = {
  viewer: 'Can view all resources and costs, but not scripts.',
  member: 'Can view everything, and change VMs, disks, networks and firewall rules.',
  admin: 'Can do what a member can, and manage projects, keys, webhooks and budgets.',
  owner: 'Can do what an admin can, and manage members and billing.',
}

/** What each role cannot do, for members whose role is lowered. */
const limitText: Record<Role, string> = {
  viewer: 'A viewer cannot change any resource, and cannot see scripts.',
  member: 'A member cannot manage projects, keys, webhooks, budgets, members or billing.',
  admin: 'An admin cannot manage members or billing.',
  owner: '',
}

const lastOwnerReason = 'This is the last owner. Make another member an owner first.'

/** An organization must keep an owner who has accepted the invitation. */
const isLastOwner = ({ user_id }: Member, members: Member[]): boolean => {
  const owners = members.filter(({ role, state }) => role === 'owner' && state === 'active')
  return owners.length === 1 && owners[0]!.user_id === user_id
}

export function Members() {
  const { organization_id } = useProject()
  const { caller, organizations, projects } = useMe()
  const members = useQuery(readAll('memberList', { organization_id }))
  const whyNot = useWhyNot('owner')
  const [isInviting, setInviting] = useState(false)
  const [removing, setRemoving] = useState<Member | null>(null)
  const [invited, setInvited] = useState<{ email: string; url: string } | null>(null)
  const [promoted, setPromoted] = useState<Member | null>(null)
  const [demoted, setDemoted] = useState<{ member: Member; role: Role } | null>(null)
  const [revokesKeys, setRevokesKeys] = useState(false)
  const change = useAction({
    run: ({ member, role }: { member: Member; role: Role }) =>
      client.memberUpdate({ organization_id, user_id: member.user_id, revoke_keys: revokesKeys }, { role }),
    done: ({ member, role }, { access_keys }) => `${member.email} is now ${role}${keysLeft(access_keys)}`,
    failed: ({ member }) => `Could not change the role of ${member.email}`,
    invalidates: ['memberList'],
  })
  const inviteAgain = useAction({
    run: async ({ email, role }: Member) => {
      const { invite_url } = await client.memberCreate({ organization_id }, { email, role })
      if (invite_url) setInvited({ email, url: invite_url })
    },
    done: () => '',
    failed: ({ email }) => `Could not invite ${email} again`,
    invalidates: ['memberList'],
  })
  const remove = useAction({
    run: (member: Member) =>
      client.memberDelete({ organization_id, user_id: member.user_id, revoke_keys: revokesKeys }),
    done: (member, { access_keys }) => `Removed ${member.email}${keysLeft(access_keys)}`,
    invalidates: ['memberList'],
    showsErrors: true,
  })
  const choose = (member: Member, role: Role) => {
    setRevokesKeys(false)
    if (role === 'owner') setPromoted(member)
    else if (member.state === 'active' && roles.indexOf(role) < roles.indexOf(member.role))
      setDemoted({ member, role })
    else change.mutate({ member, role })
  }
  const keyLists = useQueries({
    queries: projects
      .filter((project) => project.organization_id === organization_id)
      .map(({ id }) => ({
        ...readAll('accessKeyList', { project_id: id }),
        enabled: Boolean(removing ?? demoted),
      })),
  })
  const keysChoice = ({ user_id }: Member) => {
    const created = createdKeys(
      keyLists.map(({ data }) => data),
      user_id,
    )
    if (created === 0) return <p>The member created no project keys.</p>
    const countText = created === null ? '' : `The member created ${plural(created, 'project key')}. `
    return (
      <CheckField
        label="Revoke the project keys that the member created"
        hint={`${countText}If you do not revoke the keys, programs with these keys keep their access.`}
        isChecked={revokesKeys}
        onChange={setRevokesKeys}
      />
    )
  }
  const changeCommands = ({ email, user_id }: Member, role: Role) =>
    organizationCommands(organization_id, {
      cli: `slipway member change ${shellQuote(email)} --role ${role}${revokesKeys ? ' --revoke-keys' : ''}`,
      method: 'PATCH',
      path: `/members/${user_id}${revokesKeys ? '?revoke_keys=true' : ''}`,
      body: { role },
    })
  const organization = organizations.find(({ id }) => id === organization_id)
  return (
    <Page
      title="Settings"
      tabTitle="Members"
      actions={
        <Button
          kind="primary"
          icon={<Icon name="user-plus" size={16} />}
          reason={whyNot}
          onClick={() => setInviting(true)}
        >
          Invite member
        </Button>
      }
    >
      <SettingsTabs />
      <p className="text-ink-muted">
        Members of {organization?.name ?? 'the organization'} can see all of its projects.
      </p>
      <Loaded query={members} rows={3}>
        {(data) => (
          <Table
            label="Members"
            rows={data}
            rowKey={(member) => member.user_id}
            columns={[
              {
                key: 'email',
                title: 'E-mail',
                width: 'minmax(180px, 2fr)',
                cell: (member) => (
                  <span className="font-medium">
                    {member.email}
                    {member.user_id === caller.id && (
                      <span className="font-normal text-ink-muted"> (you)</span>
                    )}
                  </span>
                ),
              },
              {
                key: 'role',
                title: 'Role',
                width: '120px',
                cell: (member) =>
                  whyNot || isLastOwner(member, data) ? (
                    <span title={whyNot ?? lastOwnerReason}>{member.role}</span>
                  ) : (
                    <Select
                      isSmall
                      label={`Role of ${member.email}`}
                      value={member.role}
                      onChange={(role) => choose(member, role as Role)}
                      choices={roles.map((role) => ({ value: role, label: role }))}
                    />
                  ),
              },
              {
                key: 'state',
                title: 'State',
                width: '110px',
                cell: (member) => <StateBadge state={member.state} />,
              },
              { ...timestampColumn('Added', 'created_at'), isFoldable: true },
              actionColumn(
                data.some(({ state }) => state === 'invited') ? '190px' : '92px',
                (member: Member) => (
                  <>
                    {member.state === 'invited' && (
                      <Button
                        size="small"
                        reason={whyNot}
                        isBusy={inviteAgain.isPending && inviteAgain.variables?.user_id === member.user_id}
                        onClick={() => inviteAgain.mutate(member)}
                        aria-label={`Invite ${member.email} again`}
                      >
                        Invite again
                      </Button>
                    )}
                    <RowButton
                      verb="Remove"
                      name={member.email}
                      kind="danger"
                      reason={whyNot ?? (isLastOwner(member, data) ? lastOwnerReason : undefined)}
                      onClick={() => {
                        setRevokesKeys(member.state === 'active')
                        setRemoving(member)
                      }}
                    />
                  </>
                ),
              ),
            ]}
          />
        )}
      </Loaded>
      {isInviting && (
        <InviteDialog
          organizationId={organization_id}
          onClose={() => setInviting(false)}
          onInvited={setInvited}
        />
      )}
      {invited && (
        <SecretDialog
          title={`Invitation link for ${invited.email}`}
          secret={invited.url}
          note="Send this link to the new member. Anyone with this link can use it once. It expires in 7 days."
          ifLost="To get another link, invite the same address again."
          onClose={() => setInvited(null)}
        />
      )}
      {promoted && (
        <Confirm
          isOpen
          onClose={() => setPromoted(null)}
          title={`Make ${promoted.email} an owner`}
          action="Make owner"
          {...submitProps(change, { member: promoted, role: 'owner' as const }, () => setPromoted(null))}
          commands={changeCommands(promoted, 'owner')}
        >
          <p>An owner can do everything, including billing, and can remove other owners, including you.</p>
        </Confirm>
      )}
      {demoted && (
        <Confirm
          isOpen
          onClose={() => setDemoted(null)}
          title={`Change the role of ${demoted.member.email} to ${demoted.role}`}
          action={`Change to ${demoted.role}`}
          {...submitProps(change, demoted, () => setDemoted(null))}
          commands={changeCommands(demoted.member, demoted.role)}
        >
          <div className="flex flex-col gap-3">
            <p>
              {limitText[demoted.role]} Organization keys that the member created and that need a higher role
              will be revoked.
            </p>
            {keysChoice(demoted.member)}
          </div>
        </Confirm>
      )}
      {removing && (
        <Confirm
          isOpen
          onClose={() => setRemoving(null)}
          title={`Remove member ${removing.email}`}
          action="Remove member"
          {...submitProps(remove, removing, () => setRemoving(null))}
          commands={organizationCommands(organization_id, {
            cli: `slipway member delete ${shellQuote(removing.email)}${revokesKeys ? ' --revoke-keys' : ''}`,
            method: 'DELETE',
            path: `/members/${removing.user_id}${revokesKeys ? '?revoke_keys=true' : ''}`,
          })}
        >
          <div className="flex flex-col gap-3">
            <p>
              The member will immediately lose access to all projects of the organization. Organization keys
              that the member created will be revoked. Resources that the member created will be kept.
            </p>
            {removing.state === 'active' && keysChoice(removing)}
          </div>
        </Confirm>
      )}
    </Page>
  )
}

/** Returns the part of a toast that lists the project keys that remain valid. */
const keysLeft = (keys: AccessKey[]) =>
  keys.length === 0 ? '' : `. Project keys that remain valid: ${keys.map(({ name }) => name).join(', ')}`

/** Returns how many keys the user created; null until it is known. */
function createdKeys(lists: (AccessKey[] | undefined)[], userId: string): number | null {
  if (lists.some((list) => !list)) return null
  return lists.flatMap((list) => list ?? []).filter(({ created_by }) => created_by === userId).length
}

function InviteDialog({
  organizationId,
  onClose,
  onInvited,
}: {
  organizationId: string
  onClose: () => void
  onInvited: (invited: { email: string; url: string }) => void
}) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const sendsMail = useSendsMail()
  const invite = useAction({
    run: () => client.memberCreate({ organization_id: organizationId }, { email: email.trim(), role }),
    done: (_, { invite_url }) => (invite_url ? '' : `Added ${email.trim()}`),
    invalidates: ['memberList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Invite member"
      action="Invite"
      {...submitProps(invite, undefined, ({ invite_url }) => {
        onClose()
        if (invite_url) onInvited({ email: email.trim(), url: invite_url })
      })}
      reason={/^\S+@\S+$/.test(email.trim()) ? undefined : 'Enter an e-mail address'}
      commands={organizationCommands(organizationId, {
        cli: `slipway member add ${shellQuote(email.trim() || 'EMAIL')} --role ${role}`,
        path: '/members',
        body: { email: email.trim(), role },
      })}
    >
      <TextField label="E-mail" type="email" value={email} onChange={setEmail} autoFocus autoComplete="off" />
      <SelectField
        label="Role"
        value={role}
        onChange={(value) => setRole(value as Role)}
        hint={roleText[role]}
        choices={roles.map((each) => ({ value: each, label: each }))}
      />
      <p className="text-sm text-ink-muted">
        {sendsMail
          ? 'The invitation link is sent to this address. It works for seven days.'
          : 'Creates an invitation link, which you send to the new member. It works for seven days.'}
      </p>
    </FormDialog>
  )
}
