import { type Alert, type PaymentState, paymentStates, type RouteResponse } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { OrganizationLink } from '../../features/fleet/organization-link.tsx'
import { useOrganizationSuspension } from '../../features/fleet/organization-suspension.tsx'
import { settingsPollMs } from '../../features/fleet/poll.ts'
import { suspendColumn } from '../../features/fleet/suspension.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { amount, count, plural, shortId } from '../../lib/format.ts'
import { curlCommand, operatorCommands, shellQuote } from '../../lib/shell.ts'
import { stateWord } from '../../lib/states.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { FilterInput, Select, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty } from '../../ui/page.tsx'
import { Mark, StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'

type Row = RouteResponse<'adminOrganizationList'>['items'][number]

export function Organizations() {
  const organizations = useQuery({ ...readAll('adminOrganizationList', {}), refetchInterval: settingsPollMs })
  const alerts = useQuery({ ...read('adminAlertList', {}), refetchInterval: settingsPollMs })
  const [search, setSearch] = useSearchState()
  const q = (search.q ?? '').toLowerCase()
  const matches = (row: Row) =>
    `${row.name} ${row.id}`.toLowerCase().includes(q) &&
    (!search.payment || paymentText(row) === search.payment)
  const dueOf = ({ id }: Row) =>
    (alerts.data?.items ?? []).filter(
      ({ resource_type, organization_id }) => resource_type === 'invoice' && organization_id === id,
    )
  const [isCreating, setCreating] = useState(false)
  const suspension = useOrganizationSuspension()
  const create = (
    <Button kind="primary" icon={<Icon name="plus" size={16} />} onClick={() => setCreating(true)}>
      Create organization
    </Button>
  )
  return (
    <FleetPage actions={create}>
      <div className="filter-bar">
        <FilterInput label="Filter by name or ID" value={search.q ?? ''} onChange={(q) => setSearch({ q })} />
        <Select
          isSmall
          label="Payment"
          value={search.payment ?? ''}
          onChange={(payment) => setSearch({ payment })}
          choices={[
            { value: '', label: 'Any payment state' },
            ...paymentStates
              .map((state) => stateWord(paymentDisplayState(state)))
              .map((word) => ({ value: word, label: word })),
          ]}
        />
      </div>
      <Loaded query={organizations}>
        {(data) => (
          <Table
            label="Organizations"
            rows={data.filter(matches)}
            rowKey={(row) => row.id}
            sort={search.sort ?? ''}
            onSort={(sort) => setSearch({ sort })}
            empty={
              data.length > 0 ? (
                <p className="card px-4 py-3 text-ink-muted">No organizations match the filters.</p>
              ) : (
                <Empty
                  title="No organizations yet"
                  action={create}
                  cli={'slipway admin org create "Harbour Labs"'}
                  curl={curlCommand('POST', '/v0.1/admin/organizations', { name: 'Harbour Labs' })}
                >
                  An organization has members and pays for its projects. Create one, then add a user as its
                  owner.
                </Empty>
              )
            }
            columns={[
              {
                key: 'name',
                title: 'Name',
                width: 'minmax(160px, 3fr)',
                sortBy: (row) => row.name,
                cell: (row) => <OrganizationLink id={row.id} name={row.name} />,
              },
              {
                key: 'state',
                title: 'State',
                width: '104px',
                isFoldable: true,
                cell: (row) => <StateBadge state={row.suspended ? 'suspended' : 'active'} />,
              },
              {
                key: 'payment',
                title: 'Payment',
                width: 'minmax(176px, 1.2fr)',
                sortBy: paymentText,
                cell: (row) => <Payment row={row} due={dueOf(row)} />,
              },
              {
                key: 'spend',
                title: 'Month (USD)',
                width: '120px',
                align: 'right',
                sortBy: (row) => row.month_to_date_usd,
                cell: (row) => amount(row.month_to_date_usd),
              },
              {
                key: 'projects',
                title: 'Projects',
                width: '92px',
                isFoldable: true,
                align: 'right',
                sortBy: (row) => row.projects,
                cell: (row) => count(row.projects),
              },
              {
                key: 'vms',
                title: 'VMs',
                width: '76px',
                isFoldable: true,
                align: 'right',
                sortBy: (row) => row.vms,
                cell: (row) => (
                  <Link
                    to="/fleet/vms"
                    search={{ organization: row.id }}
                    className="link"
                    aria-label={`${plural(row.vms, 'VM')} of ${row.name}`}
                  >
                    {count(row.vms)}
                  </Link>
                ),
              },
              {
                key: 'id',
                title: 'ID',
                width: '128px',
                isFoldable: true,
                cell: (row) => <Copyable text={row.id} shown={`…${shortId(row.id)}`} />,
              },
              { ...ageColumn, width: '86px' },
              suspendColumn(suspension),
            ]}
          />
        )}
      </Loaded>
      {suspension.dialog}
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </FleetPage>
  )
}

/** The page shows organizations that are not suspended as `active`, so an active payment is shown as `paying`. */
const paymentDisplayState = (state: PaymentState) => (state === 'active' ? 'paying' : state)
const paymentText = (row: Row) => stateWord(paymentDisplayState(row.payment_state))

/** The payment state and the unpaid invoices of an organization. */
function Payment({ row, due }: { row: Row; due: Alert[] }) {
  return (
    <span className="inline-flex flex-wrap items-center gap-x-3">
      <StateBadge state={paymentDisplayState(row.payment_state)} />
      {due.length > 0 && (
        <span
          className="inline-flex items-center gap-2 whitespace-nowrap text-amber-text"
          title={due.map(({ message }) => message).join('\n')}
        >
          <Mark tone="warn" />
          {plural(due.length, 'invoice')} due
        </span>
      )}
    </span>
  )
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const create = useAction({
    run: () => client.adminOrganizationCreate({ name: name.trim() }),
    done: () => `Created ${name.trim()}`,
    invalidates: ['adminOrganizationList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create organization"
      action="Create organization"
      {...submitProps(create, undefined, onClose)}
      reason={name.trim() ? undefined : 'Enter a name'}
      commands={operatorCommands({
        cli: `slipway admin org create ${shellQuote(name.trim() || 'NAME')}`,
        path: '/organizations',
        body: { name: name.trim() },
      })}
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        hint="Next, add a user as the owner of the organization on the Users page."
        autoFocus
      />
    </FormDialog>
  )
}
