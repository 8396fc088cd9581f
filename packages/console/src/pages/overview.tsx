import type { Vm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { type Limit, limitsOf } from '../api/limits.ts'
import { useProject } from '../api/me.ts'
import { read, readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { ProjectAlerts, useHasPaymentAlert, useLacksPaymentMethod } from '../features/alerts.tsx'
import { CreateVmButton } from '../features/create-vm-button.tsx'
import { EventTable } from '../features/event-table.tsx'
import { GettingStarted } from '../features/getting-started.tsx'
import { Suggestions } from '../features/suggestions.tsx'
import { money, plural, quotaLabel, usd } from '../lib/format.ts'
import { stateStyles, type Tone } from '../lib/states.ts'
import { ErrorState } from '../ui/error.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Page, Section, UsageBar } from '../ui/page.tsx'
import { StateBadge } from '../ui/state.tsx'

export function Overview() {
  const project = useProject()
  const projectId = project.id
  const params = { project_id: projectId }
  const vms = useQuery(readAll('vmList', params))
  const quotas = useQuery(read('quotaList', { params }))
  const { organization_id } = project
  const organizationQuotas = useQuery(read('organizationQuotaList', { params: { organization_id } }))
  const costs = useQuery({ ...read('projectCosts', { params }), refetchInterval: 30_000 })
  const budget = useQuery(read('budgetGet', { params }))
  // A budget is not urgent while payments fail.
  const hasPaymentAlert = useHasPaymentAlert()
  // The alert has the button that leads to billing.
  const lacksPaymentMethod = useLacksPaymentMethod()
  const count = (state: string) => (vms.data ?? []).filter((vm) => vm.state === state).length
  return (
    <Page
      title={project.name}
      actions={!lacksPaymentMethod && <CreateVmButton kind={vms.data?.length === 0 ? 'plain' : 'primary'} />}
    >
      <ProjectAlerts projectId={projectId} />
      {vms.data?.length === 0 && <GettingStarted hasCard />}
      <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Figure label="Running" value={vms.data ? plural(count('STATE_RUNNING'), 'VM') : '–'} />
        <Figure
          label="Current cost"
          value={costs.data ? `${usd(costs.data.usd_per_hour)}/h` : '–'}
          note="VMs and disks"
        />
        <Figure
          label="Month to date"
          value={costs.data ? money(costs.data.month_to_date_usd) : '–'}
          note={budget.data?.monthly_usd ? `of ${usd(budget.data.monthly_usd)} budget` : ''}
        />
        <Figure label="Month forecast" value={costs.data ? money(costs.data.forecast_usd) : '–'} />
      </div>
      {costs.error && !costs.data && <ErrorState error={costs.error} onRetry={() => costs.refetch()} />}
      <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
        <Section title="VMs">
          <Loaded query={vms} rows={3}>
            {(data) => (
              <ul className="card divide-y divide-line">
                {mostRelevant(data).map((vm) => (
                  <li key={vm.id} className="flex min-h-9 items-center gap-3 px-3 py-1.5">
                    {/* The type moves below a long name. */}
                    <span className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-3">
                      <Link
                        to="/projects/$projectId/vms/$vmId"
                        params={{ projectId, vmId: vm.id }}
                        className="min-w-0 flex-auto font-medium break-words hover:text-accent-text hover:underline"
                      >
                        {vm.name}
                      </Link>
                      <span className="text-sm whitespace-nowrap text-ink-muted">{vm.type}</span>
                    </span>
                    <span className="flex w-28 shrink-0 justify-end">
                      <StateBadge state={vm.state} />
                    </span>
                  </li>
                ))}
                {data.length === 0 && <li className="px-3 py-2 text-ink-muted">No VMs yet.</li>}
                {data.length > shownVms && (
                  <li className="px-3 py-2">
                    <Link to="/projects/$projectId/vms" params={{ projectId }} className="link">
                      All {plural(data.length, 'VM')}
                    </Link>
                  </li>
                )}
              </ul>
            )}
          </Loaded>
        </Section>
        <Section title="Quotas">
          <Loaded query={quotas} rows={4}>
            {({ items }) => (
              <Loaded query={organizationQuotas} rows={4}>
                {(organization) => <Limits limits={limitsOf(items, organization.items)} />}
              </Loaded>
            )}
          </Loaded>
        </Section>
      </div>
      <Suggestions projectId={projectId} />
      <Section
        title="Latest activity"
        actions={
          <Link to="/projects/$projectId/activity" params={{ projectId }} className="link text-sm">
            All activity
          </Link>
        }
      >
        <EventTable projectId={projectId} limit={8} isExcerpt />
      </Section>
      {/* At the end, where it moves nothing when it appears. */}
      {vms.data?.length !== 0 && hasPaymentAlert === false && <GettingStarted hasCard />}
    </Page>
  )
}

const shownVms = 6

/** Returns the first VMs to list: those with a problem, then those that change, are running, and are stopped. */
function mostRelevant(vms: Vm[]): Vm[] {
  const order: Tone[] = ['bad', 'warn', 'busy', 'good', 'idle']
  const rankOf = ({ state }: Vm) => order.indexOf(stateStyles[state]?.[0] ?? 'idle')
  return vms.toSorted((a, b) => rankOf(a) - rankOf(b)).slice(0, shownVms)
}

const limitTitles: Record<Limit['owner'], string> = {
  project: 'Project limits',
  organization: 'Organization limits (all projects combined)',
}

/** Shows the usage of each quota, grouped by the owner of the limit. */
function Limits({ limits }: { limits: Limit[] }) {
  const owners = [...new Set(limits.map((limit) => limit.owner))].sort().reverse()
  return (
    <div className="card flex flex-col gap-4 p-4">
      {owners.map((owner) => (
        <section key={owner} aria-label={limitTitles[owner]} className="flex flex-col gap-2">
          <h3 className="text-sm text-ink-muted">{limitTitles[owner]}</h3>
          <div className="grid gap-x-6 gap-y-3 sm:grid-cols-2">
            {limits
              .filter((limit) => limit.owner === owner)
              .map(({ name, used, max }) => (
                <UsageBar key={name} label={quotaLabel(name)} used={used} max={max} />
              ))}
          </div>
        </section>
      ))}
    </div>
  )
}

/** Shows a large number with a small unit, so that both fit on a phone. */
function Figure({ label, value, note = '' }: { label: string; value: string; note?: string }) {
  const [figure, ...unit] = value.split(' ')
  return (
    <div className="card min-h-21 px-4 py-3">
      <p className="text-sm text-ink-muted">{label}</p>
      <p className="figures mt-0.5 flex flex-wrap items-baseline gap-x-1.5 text-xl font-semibold">
        {figure} <span className="text-base font-normal text-ink-muted">{unit.join(' ')}</span>
      </p>
      {note && <p className="figures text-sm text-ink-muted">{note}</p>}
    </div>
  )
}
