import type { Budget, Invoice, RouteResponse } from '@slipway/sdk'
import { type FormEvent, useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useMe, useProject, useRole, useWhyNot } from '../../api/me.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { PaymentAlerts, usePaymentAlerts } from '../../features/alerts.tsx'
import { BillingButton, InvoiceLink } from '../../features/billing-button.tsx'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { money, usd } from '../../lib/format.ts'
import { monthText } from '../../lib/months.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { ShowAs } from '../../ui/commands.tsx'
import { ErrorNote } from '../../ui/error.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Page, Section, UsageBar } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'

export function Billing() {
  const project = useProject()
  const { organizations } = useMe()
  const organization_id = project.organization_id
  const role = useRole(organization_id)
  const budget = useQuery(read('budgetGet', { params: { project_id: project.id } }))
  const costs = useQuery(read('organizationCosts', { params: { organization_id } }))
  const invoices = useQuery(readAll('organizationInvoices', { organization_id }))
  const method = useQuery({
    ...read('organizationPaymentMethod', { params: { organization_id } }),
    enabled: role === 'owner',
  })
  // If an alert has the billing button, do not show the button again below it.
  const isOffered = usePaymentAlerts().some(({ resource_type }) => resource_type !== 'invoice')
  const organization = organizations.find(({ id }) => id === organization_id)
  const whyNotBilling =
    role === '' || role === 'owner'
      ? undefined
      : `Only owners can open the billing dashboard. Your role is ${role}.`
  return (
    <Page title="Settings" tabTitle="Billing and budget">
      <SettingsTabs />
      <PaymentAlerts
        actionOf={({ alert: { resource_type, resource_id } }) => (
          <BillingButton
            organizationId={organization_id}
            invoiceId={resource_type === 'invoice' ? resource_id : undefined}
            label={resource_type === 'invoice' ? 'View invoice' : 'Change payment method'}
            kind={resource_type === 'invoice' ? 'plain' : 'primary'}
            reason={whyNotBilling}
          />
        )}
      />
      <Section title="Payment method and invoices">
        <div className="card flex flex-wrap items-center justify-between gap-4 p-4">
          <div className="flex min-w-0 flex-col gap-1">
            {role === 'owner' ? (
              <Method method={method.data} />
            ) : (
              role !== '' && <p>Only owners can view and change the payment method.</p>
            )}
            <p className="text-ink-muted">
              {organization?.name ?? 'The organization'} pays for all of its projects.
              {costs.data && ` Forecast for this month: ${money(costs.data.forecast_usd)}.`}
            </p>
          </div>
          {!isOffered && (
            <BillingButton organizationId={organization_id} kind="plain" reason={whyNotBilling} />
          )}
        </div>
        <Loaded query={invoices} rows={2}>
          {(data) =>
            data.length === 0 ? (
              <p className="text-ink-muted">
                No invoices yet. The first invoice is issued at the end of the month.
              </p>
            ) : (
              <Invoices
                items={data}
                soFarUsd={costs.data?.month_to_date_usd}
                organizationId={role === 'owner' ? organization_id : ''}
              />
            )
          }
        </Loaded>
      </Section>
      <Section title={`Budget for project ${project.name}`}>
        <Loaded query={budget} rows={2}>
          {(data) => <BudgetForm key={project.id} projectId={project.id} budget={data} />}
        </Loaded>
      </Section>
    </Page>
  )
}

/** Shows the brand, the last digits and the state of the card. */
function Method({ method }: { method: RouteResponse<'organizationPaymentMethod'> | undefined }) {
  if (!method) return <p className="text-ink-muted">…</p>
  const { state, brand, last4, expires_month } = method
  return (
    <p className="flex flex-wrap items-center gap-x-3">
      {last4 && (
        <span className="font-medium">
          {brand} ending in <span className="figures">{last4}</span>
        </span>
      )}
      {expires_month && (
        <span className="figures text-ink-muted">expires at the end of {monthText(expires_month)}</span>
      )}
      <StateBadge state={state} />
    </p>
  )
}

interface InvoicesProps {
  items: Invoice[]
  soFarUsd: number | undefined
  /** The organization of the invoices; empty if the user may not open them. */
  organizationId: string
}

/** The current month shows the same amount as Overview and Usage. */
function Invoices({ items, soFarUsd, organizationId }: InvoicesProps) {
  return (
    <Table
      label="Invoices"
      rows={items}
      rowKey={(invoice) => invoice.id}
      columns={[
        {
          key: 'period',
          title: 'Period',
          width: 'minmax(140px, 2fr)',
          cell: ({ id, period_start }) => {
            const words = monthText(period_start.slice(0, 7))
            if (!organizationId) return words
            return (
              <InvoiceLink organizationId={organizationId} invoiceId={id}>
                {words}
              </InvoiceLink>
            )
          },
        },
        {
          key: 'state',
          title: 'State',
          width: '120px',
          cell: (invoice) => <StateBadge state={invoice.state === 'issued' ? 'due' : invoice.state} />,
        },
        {
          key: 'usd',
          title: 'Amount',
          width: '180px',
          align: 'right',
          cell: ({ state, usd }) => (state === 'open' ? `${money(soFarUsd ?? usd)} so far` : money(usd)),
        },
      ]}
    />
  )
}

const limitText = ({ monthly_usd }: Budget) => (monthly_usd === null ? '' : String(monthly_usd))

function BudgetForm({ projectId, budget }: { projectId: string; budget: Budget }) {
  const whyNot = useWhyNot('admin')
  const [limit, setLimit] = useState(limitText(budget))
  const [isHard, setHard] = useState(budget.hard_stop)
  const isNumber = limit === '' || /^\d+(\.\d{1,2})?$/.test(limit)
  const request = { monthly_usd: limit === '' ? null : Number(limit), hard_stop: isHard }
  const isChanged = request.monthly_usd !== budget.monthly_usd || isHard !== budget.hard_stop
  const reason = whyNot ?? (!isNumber ? 'Correct the amount' : isChanged ? undefined : 'No changes yet')
  const save = useAction({
    run: () => client.budgetSet({ project_id: projectId }, request),
    done: () => (limit === '' ? 'Budget removed' : `Budget set to ${usd(Number(limit))} per month`),
    undo: () => async () => {
      const { monthly_usd, hard_stop } = budget
      await client.budgetSet({ project_id: projectId }, { monthly_usd, hard_stop })
      setLimit(limitText(budget))
      setHard(hard_stop)
    },
    invalidates: ['budgetGet'],
    showsErrors: true,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!reason) save.mutate(undefined)
  }
  return (
    <form onSubmit={submit} noValidate className="card flex max-w-xl flex-col gap-4 p-4">
      {budget.monthly_usd !== null && (
        <UsageBar
          label="Spent this month"
          used={Math.round(budget.spent_usd * 100) / 100}
          max={budget.monthly_usd}
          unit="USD"
        />
      )}
      <TextField
        label="Monthly limit (USD)"
        inputMode="decimal"
        value={limit}
        onChange={setLimit}
        placeholder="none"
        problem={isNumber ? undefined : 'Enter an amount such as 500 or 99.50.'}
        hint="You get an alert at 50%, 80% and 100% of the limit. Leave empty for no budget."
      />
      <CheckField
        label="Block new VMs, VM starts and new disks when the budget is spent"
        hint="Running VMs are not stopped."
        isChecked={isHard}
        onChange={setHard}
      />
      {save.error && <ErrorNote error={save.error} />}
      <ShowAs
        commands={projectCommands(projectId, {
          cli: `slipway project budget ${limit === '' ? '--none' : `--set ${shellQuote(limit)}${isHard ? ' --hard-stop' : ''}`}`,
          method: 'PUT',
          path: '/budget',
          body: request,
          terraform: 'budget',
        })}
      />
      <div>
        <Button type="submit" kind="primary" isBusy={save.isPending} reason={reason}>
          Save budget
        </Button>
      </div>
    </form>
  )
}
