import type { OrganizationQuota, QuotaRequest } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useSendsMail, useWhyNot } from '../../api/me.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { count, plural, quotaLabel } from '../../lib/format.ts'
import { curlCommand, shellQuote } from '../../lib/shell.ts'
import { Button, RowButton } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Section, UsageBar } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'

/** The limits for all projects combined, and the requests to raise them. */
export function OrganizationQuotas({ organizationId }: { organizationId: string }) {
  const params = { organization_id: organizationId }
  const quotas = useQuery(read('organizationQuotaList', { params }))
  const requests = useQuery(readAll('quotaRequestList', params))
  const whyNot = useWhyNot('admin')
  const [isAsking, setAsking] = useState(false)
  const isOpen = ({ name }: OrganizationQuota) =>
    requests.data?.some((request) => request.state === 'open' && request.name === name) ?? false
  const requestable = (quotas.data?.items ?? []).filter((quota) => !isOpen(quota))
  return (
    <>
      <Section
        title="Organization quotas"
        actions={
          <Button
            reason={whyNot ?? (requestable.length === 0 ? 'Every quota has an open request.' : undefined)}
            onClick={() => setAsking(true)}
          >
            Request higher quota
          </Button>
        }
      >
        <Loaded query={quotas} rows={4}>
          {({ items }) => <Limits items={items} />}
        </Loaded>
        {isAsking && (
          <RequestDialog
            organizationId={organizationId}
            quotas={requestable}
            onClose={() => setAsking(false)}
          />
        )}
      </Section>
      {requests.data && requests.data.length > 0 && (
        <Section title="Quota requests">
          <Requests rows={requests.data} />
        </Section>
      )}
    </>
  )
}

/** Shows the limits in use, and the others on demand. */
function Limits({ items }: { items: OrganizationQuota[] }) {
  const [showsUnused, setShowsUnused] = useState(false)
  const inUse = items.filter(({ used }) => used > 0)
  const unused = items.filter(({ used }) => used === 0)
  const shown = showsUnused || inUse.length === 0 ? [...inUse, ...unused] : inUse
  return (
    <div className="card flex flex-col items-start gap-3 p-4">
      <div className="grid w-full gap-x-6 gap-y-3 sm:grid-cols-2">
        {shown.map(({ name, used, max }) => (
          <UsageBar key={name} label={quotaLabel(name)} used={used} max={max} />
        ))}
      </div>
      {inUse.length > 0 && unused.length > 0 && (
        <button
          type="button"
          className="link text-sm"
          aria-expanded={showsUnused}
          onClick={() => setShowsUnused(!showsUnused)}
        >
          {showsUnused ? 'Hide' : 'Show'} {plural(unused.length, 'unused limit')}
        </button>
      )}
    </div>
  )
}

function Requests({ rows }: { rows: QuotaRequest[] }) {
  const whyNot = useWhyNot('admin')
  const withdraw = useAction({
    run: ({ organization_id, id }: QuotaRequest) =>
      client.quotaRequestDelete({ organization_id, quota_request_id: id }),
    done: ({ name }) => `Withdrew the request for ${quotaLabel(name)}`,
    failed: ({ name }) => `Could not withdraw the request for ${quotaLabel(name)}`,
    undo:
      ({ organization_id, name, max, reason }) =>
      () =>
        client.quotaRequestCreate({ organization_id }, { name, max, reason }),
    invalidates: ['quotaRequestList'],
  })
  return (
    <Table
      label="Quota requests"
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          key: 'name',
          title: 'Requested quota',
          width: 'minmax(150px, 1fr)',
          cell: ({ name }) => <span className="font-medium">{quotaLabel(name)}</span>,
        },
        {
          key: 'max',
          title: 'Limit',
          width: '100px',
          align: 'right',
          cell: ({ max }) => count(max),
        },
        { key: 'state', title: 'State', width: '120px', cell: ({ state }) => <StateBadge state={state} /> },
        {
          key: 'reason',
          title: 'Reason and response',
          width: 'minmax(180px, 2fr)',
          isFoldable: true,
          cell: ({ reason, note }) => (note ? `${reason} → ${note}` : reason),
        },
        { ...timestampColumn('Requested', 'created_at'), isFoldable: true },
        actionColumn(
          '110px',
          (request: QuotaRequest) =>
            request.state === 'open' && (
              <RowButton
                verb="Withdraw"
                name={quotaLabel(request.name)}
                reason={whyNot}
                isBusy={withdraw.isPending && withdraw.variables?.id === request.id}
                onClick={() => withdraw.mutate(request)}
              />
            ),
        ),
      ]}
    />
  )
}

/** Returns the fullest GPU quota, because most requests are for GPUs. Without GPU quotas, returns the fullest quota. */
function likeliest(quotas: OrganizationQuota[]): OrganizationQuota | undefined {
  const fullestFirst = quotas.toSorted((a, b) => b.used / b.max - a.used / a.max)
  return fullestFirst.find(({ name }) => name.endsWith('_gpus')) ?? fullestFirst[0]
}

interface RequestDialogProps {
  organizationId: string
  /** The quotas without an open request. */
  quotas: OrganizationQuota[]
  onClose: () => void
}

function RequestDialog({ organizationId, quotas, onClose }: RequestDialogProps) {
  const [name, setName] = useState(() => likeliest(quotas)?.name ?? 'vms')
  const [max, setMax] = useState('')
  const sendsMail = useSendsMail()
  const [reason, setReason] = useState('')
  const current = quotas.find((quota) => quota.name === name)
  const request = { name, max: Number(max), reason: reason.trim() }
  const create = useAction({
    run: () => client.quotaRequestCreate({ organization_id: organizationId }, request),
    done: () => `Requested ${quotaLabel(name)}: ${count(request.max)}`,
    invalidates: ['quotaRequestList', 'adminQuotaRequestList', 'adminAlertList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Request a higher quota"
      action="Send request"
      {...submitProps(create, undefined, onClose)}
      reason={
        !Number.isInteger(request.max) || request.max <= (current?.max ?? 0)
          ? `Enter a limit higher than ${count(current?.max ?? 0)}`
          : request.reason === ''
            ? 'Enter a reason'
            : undefined
      }
      commands={{
        cli: `slipway org quota-request create ${name}=${max || 'MAX'} --reason ${shellQuote(request.reason || 'REASON')}`,
        curl: curlCommand('POST', `/v0.1/organizations/${organizationId}/quota-requests`, request),
      }}
    >
      <p className="text-ink-muted">
        The operators will review the request.{' '}
        {sendsMail
          ? 'Owners and admins get the decision by e-mail.'
          : 'You will see the decision on this page.'}
      </p>
      <SelectField
        label="Quota"
        value={name}
        onChange={(value) => setName(value as typeof name)}
        choices={quotas.map((quota) => ({ value: quota.name, label: quotaLabel(quota.name) }))}
      />
      <TextField
        label="New limit"
        value={max}
        onChange={setMax}
        hint={current && `Currently ${count(current.max)}, with ${count(current.used)} in use.`}
        inputMode="numeric"
      />
      <TextField label="Reason" value={reason} onChange={setReason} hint="What you need it for, and when." />
    </FormDialog>
  )
}
