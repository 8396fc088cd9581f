import type { QuotaRequest } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { OrganizationLink } from '../../features/fleet/organization-link.tsx'
import { recordedPollMs } from '../../features/fleet/poll.ts'
import { count, quotaLabel } from '../../lib/format.ts'
import { curlCommand, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

type Decision = 'approved' | 'rejected'

/** The open quota requests of all organizations. Renders nothing if there are none. */
export function QuotaRequests() {
  const requests = useQuery({
    ...readAll('adminQuotaRequestList', { state: 'open' }),
    refetchInterval: recordedPollMs,
  })
  const [deciding, setDeciding] = useState<{ request: QuotaRequest; decision: Decision } | null>(null)
  if (!requests.data || requests.data.length === 0) return null
  return (
    <Section title="Quota requests">
      <Table
        label="Quota requests"
        rows={requests.data}
        rowKey={({ id }) => id}
        columns={[
          {
            key: 'organization',
            title: 'Organization',
            width: 'minmax(110px, 1fr)',
            cell: ({ organization_id, organization_name }) => (
              <OrganizationLink id={organization_id} name={organization_name} />
            ),
          },
          {
            key: 'quota',
            title: 'Quota',
            width: 'minmax(150px, 1fr)',
            isFoldable: true,
            cell: ({ name }) => quotaLabel(name),
          },
          {
            key: 'change',
            title: 'Limit',
            width: '180px',
            align: 'right',
            cell: ({ current_max, max }) => `${count(current_max)} → ${count(max)}`,
          },
          {
            key: 'reason',
            title: 'Reason',
            width: 'minmax(180px, 2fr)',
            isFoldable: true,
            cell: ({ reason }) => reason,
          },
          { ...timestampColumn('Requested', 'created_at'), isFoldable: true },
          actionColumn('152px', (request: QuotaRequest) => (
            <>
              <Button
                size="small"
                aria-label={`Approve ${quotaLabel(request.name)} of ${request.organization_name}`}
                onClick={() => setDeciding({ request, decision: 'approved' })}
              >
                Approve
              </Button>
              <Button
                size="small"
                kind="danger"
                aria-label={`Reject ${quotaLabel(request.name)} of ${request.organization_name}`}
                onClick={() => setDeciding({ request, decision: 'rejected' })}
              >
                Reject
              </Button>
            </>
          )),
        ]}
      />
      {deciding && <DecisionDialog {...deciding} onClose={() => setDeciding(null)} />}
    </Section>
  )
}

interface DecisionDialogProps {
  request: QuotaRequest
  decision: Decision
  onClose: () => void
}

function DecisionDialog({ request, decision, onClose }: DecisionDialogProps) {
  const { id, name, current_max, max, organization_name, reason } = request
  const [note, setNote] = useState('')
  const body = { state: decision, ...(note.trim() && { note: note.trim() }) }
  const isApproval = decision === 'approved'
  const decide = useAction({
    run: () => client.adminQuotaRequestUpdate({ quota_request_id: id }, body),
    done: () => `${isApproval ? 'Approved' : 'Rejected'} the request from ${organization_name}`,
    invalidates: [
      'adminQuotaRequestList',
      'adminOrganizationQuotaList',
      'organizationQuotaList',
      'quotaRequestList',
      'quotaList',
      'adminAlertList',
    ],
    showsErrors: true,
  })
  const verb = isApproval ? 'Approve' : 'Reject'
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`${verb} the request from ${organization_name}`}
      action={`${verb} request`}
      kind={isApproval ? 'primary' : 'danger'}
      {...submitProps(decide, undefined, onClose)}
      commands={{
        cli: `slipway admin quota-request ${isApproval ? 'approve' : 'reject'} ${id}${body.note ? ` --note ${shellQuote(body.note)}` : ''}`,
        curl: curlCommand('PATCH', `/v0.1/admin/quota-requests/${id}`, body),
      }}
    >
      <p>
        Requested: {quotaLabel(name)} {count(current_max)} → {count(max)}.{' '}
        {isApproval ? 'The new limit will apply immediately.' : 'The limit will not change.'}
      </p>
      <p className="text-ink-muted">Their reason: {reason}</p>
      <TextField
        label="Note for the organization (optional)"
        value={note}
        onChange={setNote}
        hint="Included in the e-mail to owners and admins."
      />
    </FormDialog>
  )
}
