import type { Alert } from '@slipway/sdk'
import { Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import { useMe, useProject } from '../api/me.ts'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { plural } from '../lib/format.ts'
import { Icon } from '../ui/icon.tsx'
import { Menu } from '../ui/menu.tsx'
import { Mark } from '../ui/state.tsx'
import { Age } from '../ui/time.tsx'
import { Sentence } from '../ui/token.tsx'

const pollMs = 10_000
const none: Alert[] = []
const badKinds: Alert['kind'][] = ['crashed', 'stuck', 'payment', 'host_lost', 'gpu_fault']
const toneOf = ({ kind }: Alert) => (badKinds.includes(kind) ? 'bad' : 'warn')
const countWords = (count: number) => `${plural(count, 'alert')}`
const keyOf = ({ kind, resource_id }: Alert) => `${kind} ${resource_id}`

/** Returns what needs someone: in the organization of the page, and for operators in the fleet. */
function useAlerts(): { ofTenant: Alert[]; ofFleet: Alert[] } {
  const { caller } = useMe()
  const { organization_id } = useProject()
  const tenant = useQuery({
    ...read('organizationAlertList', { params: { organization_id } }),
    enabled: organization_id !== '',
    refetchInterval: pollMs,
  })
  const fleet = useQuery({
    ...read('adminAlertList', {}),
    enabled: caller.is_operator,
    refetchInterval: pollMs,
  })
  return {
    ofTenant: tenant.data?.items ?? none,
    ofFleet: (caller.is_operator && fleet.data?.items) || none,
  }
}

/** Returns where someone can do something about it. */
function placeOf(alert: Alert, projectId: string, isOfFleet: boolean): string {
  const { kind, resource_type, resource_id, project_id } = alert
  if (kind === 'host_lost') return `/fleet/hosts/${resource_id}`
  if (kind === 'gpu_fault') return '/fleet/capacity'
  if (isOfFleet)
    return kind === 'stuck' ? '/fleet/operations' : `/fleet/organizations?q=${alert.organization_id}`
  const base = `/projects/${project_id || projectId}`
  if (kind === 'payment' || kind === 'budget') return `${base}/settings/billing`
  if (resource_type === 'vm') return `${base}/vms/${resource_id}`
  return resource_type === 'disk' ? `${base}/disks?disk=${resource_id}` : `${base}/operations`
}

/** Counts what needs someone, on every page, and leads there. */
export function AlertBell() {
  const { ofTenant, ofFleet } = useAlerts()
  const { id: projectId } = useProject()
  const navigate = useNavigate()
  const known = new Set(ofTenant.map(keyOf))
  const alerts = [
    ...ofTenant.map((alert) => ({ alert, to: placeOf(alert, projectId, false) })),
    ...ofFleet
      .filter((alert) => !known.has(keyOf(alert)))
      .map((alert) => ({ alert, to: placeOf(alert, projectId, true) })),
  ]
  const count = alerts.length
  const label = count === 0 ? 'Alerts: none' : `Alerts: ${count}`
  return (
    <Menu
      label="Alerts"
      header={count === 0 ? 'No alerts.' : countWords(count)}
      trigger={
        <button
          type="button"
          aria-label={label}
          className="relative inline-flex size-8 items-center justify-center rounded-md text-ink-muted hover:bg-sunken hover:text-ink"
        >
          <Icon name="bell" size={16} />
          {count > 0 && (
            <span
              aria-hidden="true"
              className="figures absolute top-0 right-0 min-w-4 rounded-full bg-red px-1 text-center text-[10px] leading-4 font-semibold text-on-red"
            >
              {count > 99 ? '99+' : count}
            </span>
          )}
        </button>
      }
      entries={alerts.map(({ alert, to }) => ({
        key: keyOf(alert),
        icon: <Mark tone={toneOf(alert)} />,
        label: <Words alert={alert} />,
        onSelect: () => void navigate({ to }),
      }))}
    />
  )
}

const Words = ({ alert }: { alert: Alert }) => (
  <span className="flex max-w-sm min-w-0 flex-1 items-baseline justify-between gap-3 whitespace-normal">
    <span>
      <Sentence text={alert.message} />
    </span>
    {alert.since && (
      <span className="shrink-0 text-sm text-ink-muted">
        <Age iso={alert.since} />
      </span>
    )}
  </span>
)

/** Stands at the head of a page while something in its project or organization needs someone. */
export function Alerts({ projectId }: { projectId: string }) {
  const { ofTenant } = useAlerts()
  const concerned = ofTenant.filter(({ project_id }) => project_id === projectId || project_id === '')
  const actionOf = (alert: Alert) => (
    <Link to={placeOf(alert, projectId, false)} className="link">
      Open
    </Link>
  )
  return <AlertNotes alerts={concerned} actionOf={actionOf} isCounted />
}

/** Stands on the page of a resource while it needs someone, with what helps to find out why. */
export function AlertsOf({ resourceId, detail }: { resourceId: string; detail?: ReactNode }) {
  const { ofTenant } = useAlerts()
  const alerts = ofTenant.filter(({ resource_id }) => resource_id === resourceId)
  return <AlertNotes alerts={alerts} detail={detail} />
}

const isCardGone = ({ kind, resource_type }: Alert) => kind === 'payment' && resource_type === 'organization'

/** Returns whether the organization has no valid payment method. It is fixed in another tab, so this polls often. */
export function useIsCardGone(): boolean {
  const { organization_id } = useProject()
  const { data } = useQuery({
    ...read('organizationAlertList', { params: { organization_id } }),
    enabled: organization_id !== '',
    refetchInterval: ({ state }) => (state.data?.items.some(isCardGone) ? 2_000 : false),
  })
  return data?.items.some(isCardGone) ?? false
}

/** Stands at the head of what costs money, while nothing can be paid for. */
export function CardGone({ action }: { action: ReactNode }) {
  const { ofTenant } = useAlerts()
  return <AlertNotes alerts={ofTenant.filter(isCardGone)} actionOf={() => action} />
}

/** Returns what a card or an invoice of the organization needs someone for. */
export const usePaymentAlerts = (): Alert[] => useAlerts().ofTenant.filter(({ kind }) => kind === 'payment')

/** Stands where the organization's money is looked after, while a card or an invoice needs someone. */
export function PaymentAlerts({ actionOf }: Pick<AlertNotesProps, 'actionOf'>) {
  return <AlertNotes alerts={usePaymentAlerts()} actionOf={actionOf} />
}

/** Returns the resources whose change has failed again and again, with their names: of the tenant, for operators of all. */
export function useStuck(): ReadonlyMap<string, string> {
  const { ofTenant, ofFleet } = useAlerts()
  return useMemo(
    () =>
      new Map(
        [...ofFleet, ...ofTenant].flatMap(({ kind, resource_id, name }) =>
          kind === 'stuck' ? [[resource_id, name]] : [],
        ),
      ),
    [ofTenant, ofFleet],
  )
}

interface AlertNotesProps {
  alerts: Alert[]
  /** Returns what can be done about it, if it is not on this page anyway. */
  actionOf?: ((alert: Alert) => ReactNode) | undefined
  isCounted?: boolean
  /** This stands below them. */
  detail?: ReactNode
}

const looks = { bad: 'border-red/50 bg-red-soft', warn: 'border-amber/50 bg-amber-soft' }

/** Trouble is red as a whole as soon as one part of it is. */
function AlertNotes({ alerts, actionOf, isCounted = false, detail }: AlertNotesProps) {
  if (alerts.length === 0) return null
  const look = looks[alerts.some((alert) => toneOf(alert) === 'bad') ? 'bad' : 'warn']
  return (
    <section aria-label="Alerts" className={`rounded-md border ${look}`}>
      {isCounted && <h2 className="px-4 pt-2.5 font-medium">{countWords(alerts.length)}</h2>}
      <ul className="divide-y divide-line">
        {alerts.slice(0, 5).map((alert) => (
          <li
            key={keyOf(alert)}
            className="flex flex-wrap items-center justify-end gap-x-3 gap-y-2 px-4 py-2.5"
          >
            <span className="flex min-w-0 flex-[1_1_240px] gap-3">
              <span className="flex h-5 items-center">
                <Mark tone={toneOf(alert)} />
              </span>
              <span>
                <Sentence text={alert.message} />
              </span>
            </span>
            {actionOf?.(alert)}
          </li>
        ))}
        {alerts.length > 5 && (
          <li className="px-4 py-2 text-ink-muted">{alerts.length - 5} more in the alerts menu.</li>
        )}
      </ul>
      {detail}
    </section>
  )
}
