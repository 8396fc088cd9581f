import type { RouteResponse } from '@slipway/sdk'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { AuditEvents } from '../../features/fleet/audit-events.tsx'
import { OrganizationLink } from '../../features/fleet/organization-link.tsx'
import { UserActions } from '../../features/fleet/user-actions.tsx'
import { count } from '../../lib/format.ts'
import { Copyable } from '../../ui/copy.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Facts, Page, Section } from '../../ui/page.tsx'
import { SecretDialog } from '../../ui/secret.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Timestamp } from '../../ui/time.tsx'

const trail: [string, string][] = [
  ['Fleet', '/fleet'],
  ['Users', '/fleet/users'],
]

/** The operators' view of a user: sign-in, organizations and activity. */
export function UserPage() {
  const { userId = '' } = useParams({ strict: false })
  const user = useQuery(read('adminUserGet', { params: { user_id: userId } }))
  const [resetUrl, setResetUrl] = useState('')
  if (!user.data)
    return (
      <Page title="User" trail={trail}>
        <Loaded query={user} rows={6}>
          {() => null}
        </Loaded>
      </Page>
    )
  const { data } = user
  return (
    <Page
      title={data.email || 'User without an e-mail address'}
      trail={trail}
      aside={<StateBadge state={data.suspended ? 'suspended' : 'active'} />}
      actions={<UserActions user={data} onResetLink={setResetUrl} />}
    >
      <Facts
        items={[
          [
            'Last sign-in',
            data.last_sign_in_at ? <Timestamp key="at" iso={data.last_sign_in_at} /> : 'never',
          ],
          ['Sessions', count(data.sessions)],
          ['Two-factor', data.has_totp ? 'on' : 'off'],
          ['Password', data.has_password ? 'set' : 'not set (single sign-on only)'],
          ['Operator', data.is_operator ? 'yes' : 'no'],
          ['Created', <Timestamp key="created" iso={data.created_at} />],
          ['ID', <Copyable key="id" text={data.id} />],
        ]}
      />
      <Section title="Organizations">
        <Memberships rows={data.memberships} />
      </Section>
      <Section title="Activity" about="This user’s actions, newest first.">
        <AuditEvents actor={`user:${data.id}`} limit={50} />
      </Section>
      {resetUrl && (
        <SecretDialog
          title={data.email ? `Password reset link for ${data.email}` : 'Password reset link'}
          secret={resetUrl}
          note="Send this link only to the user. It works once and expires in one hour."
          ifLost="You can create another link at any time."
          onClose={() => setResetUrl('')}
        />
      )}
    </Page>
  )
}

const Memberships = ({ rows }: { rows: RouteResponse<'adminUserGet'>['memberships'] }) => (
  <Table
    label="Organizations"
    rows={rows}
    rowKey={({ organization_id }) => organization_id}
    empty={<p className="card px-4 py-3 text-ink-muted">This user is not a member of any organization.</p>}
    columns={[
      {
        key: 'name',
        title: 'Name',
        width: 'minmax(160px, 1fr)',
        cell: ({ organization_id, organization_name }) => (
          <OrganizationLink id={organization_id} name={organization_name} />
        ),
      },
      { key: 'role', title: 'Role', width: '120px', cell: ({ role }) => role },
      {
        key: 'id',
        title: 'ID',
        width: 'minmax(330px, 1.6fr)',
        isFoldable: true,
        cell: ({ organization_id }) => <Copyable text={organization_id} />,
      },
    ]}
  />
)
