import { Link, useParams } from '@tanstack/react-router'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { useOrganizationSuspension } from '../../features/fleet/organization-suspension.tsx'
import { settingsPollMs } from '../../features/fleet/poll.ts'
import { lastSignInColumn, UserName } from '../../features/fleet/user-name.tsx'
import { count, money, quotaLabel } from '../../lib/format.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Facts, Page, Section, UsageBar } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Timestamp } from '../../ui/time.tsx'

const trail: [string, string][] = [
  ['Fleet', '/fleet'],
  ['Organizations', '/fleet/organizations'],
]

/** The operators' view of an organization: spending, projects, members and quotas. */
export function OrganizationPage() {
  const { organizationId = '' } = useParams({ strict: false })
  const organizations = useQuery({ ...readAll('adminOrganizationList', {}), refetchInterval: settingsPollMs })
  // The costs of the projects are read as often as those of the organization, so that they agree.
  const projects = useQuery({ ...readAll('adminProjectList', {}), refetchInterval: settingsPollMs })
  const quotas = useQuery({
    ...read('adminOrganizationQuotaList', { params: { organization_id: organizationId } }),
    refetchInterval: settingsPollMs,
  })
  const suspension = useOrganizationSuspension()
  const organization = organizations.data?.find(({ id }) => id === organizationId)
  if (!organization)
    return (
      <Page title="Organization" trail={trail}>
        <Loaded query={organizations}>
          {() => <p className="card px-4 py-3 text-ink-muted">There is no organization with this ID.</p>}
        </Loaded>
      </Page>
    )
  const payment = organization.payment_state === 'active' ? 'paying' : organization.payment_state
  return (
    <Page
      title={organization.name}
      trail={trail}
      aside={<StateBadge state={organization.suspended ? 'suspended' : 'active'} />}
      actions={
        <>
          <ButtonLink to="/fleet/vms" search={{ organization: organizationId }}>
            Show VMs
          </ButtonLink>
          {suspension.button(organization)}
        </>
      }
    >
      <Facts
        items={[
          ['Payment', <StateBadge key="payment" state={payment} />],
          ['Month to date', money(organization.month_to_date_usd)],
          ['VMs', count(organization.vms)],
          ['Projects', count(organization.projects)],
          ['Two-factor', organization.require_totp ? 'required' : 'not required'],
          ['Created', <Timestamp key="created" iso={organization.created_at} />],
          ['ID', <Copyable key="id" text={organization.id} />],
        ]}
      />
      <Section title="Projects">
        <Loaded query={projects} rows={3}>
          {(data) => (
            <Table
              label="Projects"
              rows={data.filter(({ organization_id }) => organization_id === organizationId)}
              rowKey={({ id }) => id}
              empty={<p className="card px-4 py-3 text-ink-muted">No projects yet.</p>}
              columns={[
                {
                  key: 'name',
                  title: 'Name',
                  width: 'minmax(140px, 1fr)',
                  cell: ({ name }) => <span className="font-medium">{name}</span>,
                },
                {
                  key: 'running',
                  title: 'Running VMs',
                  width: '116px',
                  align: 'right',
                  cell: ({ running_vms }) => count(running_vms),
                },
                {
                  key: 'vms',
                  title: 'VMs',
                  width: '70px',
                  align: 'right',
                  isFoldable: true,
                  cell: ({ vms }) => count(vms),
                },
                {
                  key: 'month',
                  title: 'Month to date',
                  width: '124px',
                  align: 'right',
                  cell: ({ month_to_date_usd }) => money(month_to_date_usd),
                },
                {
                  key: 'quotas',
                  title: 'Limits',
                  width: '100px',
                  cell: ({ id }) => (
                    <Link to="/fleet/quotas" search={{ project: id }} className="link">
                      Quotas
                    </Link>
                  ),
                },
                {
                  key: 'id',
                  title: 'ID',
                  width: 'minmax(330px, 1.6fr)',
                  isFoldable: true,
                  cell: ({ id }) => <Copyable text={id} />,
                },
              ]}
            />
          )}
        </Loaded>
      </Section>
      <Section title="Members">
        <Members organizationId={organizationId} />
      </Section>
      <Section title="Quotas">
        <Loaded query={quotas} rows={6}>
          {({ items }) => (
            <div className="card grid gap-x-8 gap-y-3 p-4 md:grid-cols-2">
              {items.map(({ name, used, max }) => (
                <UsageBar key={name} label={quotaLabel(name)} used={used} max={max} />
              ))}
            </div>
          )}
        </Loaded>
      </Section>
      {suspension.dialog}
    </Page>
  )
}

function Members({ organizationId }: { organizationId: string }) {
  const members = useQuery(readAll('adminUserList', { organization_id: organizationId }))
  return (
    <Loaded query={members} rows={3}>
      {(data) => (
        <Table
          label="Members"
          rows={data}
          rowKey={({ id }) => id}
          empty={<p className="card px-4 py-3 text-ink-muted">No members yet.</p>}
          columns={[
            {
              key: 'email',
              title: 'E-mail',
              width: 'minmax(176px, 2fr)',
              cell: (row) => <UserName row={row} />,
            },
            { key: 'role', title: 'Role', width: '90px', cell: ({ role }) => role },
            {
              key: 'state',
              title: 'State',
              width: '116px',
              cell: (row) => <StateBadge state={row.suspended ? 'suspended' : row.state} />,
            },
            lastSignInColumn,
          ]}
        />
      )}
    </Loaded>
  )
}
