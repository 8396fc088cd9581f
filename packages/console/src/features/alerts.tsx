import type { Alert } from '@slipway/sdk'
import { useQueries } from '@tanstack/react-query'
import { type LinkProps, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import { useMe, useProject } from '../api/me.ts'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { plural } from '../lib/format.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Menu } from '../ui/menu.tsx'
import { Sentence } from '../ui/no-break.tsx'
import { Mark } from '../ui/state.tsx'
import { Age } from '../ui/time.tsx'

const pollMs = 10_000
const none: Alert[] = []
const badKinds: Alert['kind'][] = [
  'clock',
  'crashed',
  'creation_failed',
  'stuck',
  'payment',
  'location_unread',
  'host_lost',
  'host_problem',
  'gpu_fault',
  'mass_gpu_fault',
  'unhealthy',
  'reservation_late',
  'webhook_failing',
]
const toneOf = ({ kind }: Alert) => (badKinds.includes(kind) ? 'bad' : 'warn')
const countText = (count: number) => `${plural(count, 'alert')}`
const keyOf = ({ kind, resource_id }: Alert) => `${kind} ${resource_id}`

/** Returns the alerts of the user's organizations and, for operators, of the fleet. */
function useAlerts(): { tenantAlerts: Alert[]; fleetAlerts: Alert[] } {
  const { caller, organizations } = useMe()
  const tenantAlerts = useQueries({
    queries: organizations.map(({ id }) => ({
      ...read('organizationAlertList', { params: { organization_id: id } }),
      refetchInterval: pollMs,
    })),
    combine: itemsOf,
  })
  const fleet = useQuery({
    ...read('adminAlertList', {}),
    enabled: caller.is_operator,
    refetchInterval: pollMs,
  })
  return {
    tenantAlerts,
    fleetAlerts: (caller.is_operator && fleet.data?.items) || none,
  }
}

/** Defined outside the hook, so that the combined result changes only if the data changes. */
const itemsOf = (lists: { data?: { items: Alert[] } | undefined }[]): Alert[] =>
  lists.flatMap(({ data }) => data?.items ?? none)

/** Returns the path of the page where the user can resolve the alerts of a group. */
function pathOf({ alert, similar }: AlertGroup, projectId: string, isFleet: boolean): string {
  const { kind, resource_type, resource_id, project_id } = alert
  if (kind === 'host_lost' || kind === 'host_problem')
    return similar > 0 ? '/fleet' : `/fleet/hosts/${resource_id}`
  if (kind === 'gpu_fault' || kind === 'mass_gpu_fault') return '/fleet/health'
  if (kind === 'clock' || kind === 'location_unread') return '/fleet/capacity'
  if (kind === 'reservation_late') return '/fleet/reservations'
  if (kind === 'quota_request') return '/fleet/quotas'
  if (isFleet)
    return kind === 'stuck' ? '/fleet/operations' : `/fleet/organizations?q=${alert.organization_id}`
  const base = `/projects/${project_id || projectId}`
  if (kind === 'payment' || kind === 'budget') return `${base}/settings/billing`
  if (kind === 'webhook_failing')
    return similar > 0 ? `${base}/settings/webhooks` : `${base}/settings/webhooks/${resource_id}`
  if (resource_type === 'vm') return similar > 0 ? `${base}/vms` : `${base}/vms/${resource_id}`
  return resource_type === 'disk' ? `${base}/disks?disk=${resource_id}` : `${base}/activity`
}

/** Returns the text of the link to the page of `pathOf`. */
function linkTextOf({ alert: { kind, resource_type }, similar }: AlertGroup): string {
  if (kind !== 'payment') return 'Open'
  if (resource_type === 'invoice') return similar > 0 ? 'View invoices' : 'View invoice'
  return 'Change payment method'
}

interface AlertGroup {
  alert: Alert
  /** The number of further alerts of the same kind in the same project. */
  similar: number
}

/** Groups alerts of the same kind in the same project. The newest alert represents the group. */
function groupAlerts(alerts: Alert[]): AlertGroup[] {
  const groups = new Map<string, AlertGroup>()
  for (const alert of alerts) {
    const key = `${alert.kind} ${alert.resource_type} ${alert.project_id || alert.organization_id}`
    const group = groups.get(key)
    if (group) group.similar += 1
    else groups.set(key, { alert, similar: 0 })
  }
  return [...groups.values()]
}

const similarText = (similar: number) => (similar > 0 ? ` And ${plural(similar, 'similar alert')}.` : '')

/** The bell in the header. It counts the alerts and links to them. */
export function AlertBell() {
  const { tenantAlerts, fleetAlerts } = useAlerts()
  const { id: openId } = useProject()
  const { projects } = useMe()
  const navigate = useNavigate()
  // An alert of an organization can be resolved in any of its projects.
  const projectOf = ({ organization_id }: Alert) => {
    const own = projects.filter((project) => project.organization_id === organization_id)
    return (own.find(({ id }) => id === openId) ?? own[0])?.id ?? openId
  }
  const known = new Set(tenantAlerts.map(keyOf))
  const others = fleetAlerts.filter((alert) => !known.has(keyOf(alert)))
  const groups = [
    ...groupAlerts(tenantAlerts).map((group) => ({
      ...group,
      to: pathOf(group, projectOf(group.alert), false),
    })),
    ...groupAlerts(others).map((group) => ({ ...group, to: pathOf(group, '', true) })),
  ]
  const count = tenantAlerts.length + others.length
  const label = count === 0 ? 'Alerts: none' : `Alerts: ${count}`
  return (
    <Menu
      label="Alerts"
      header={count === 0 ? 'No alerts.' : countText(count)}
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
      entries={groups.map(({ to, ...group }) => ({
        key: keyOf(group.alert),
        icon: <Mark tone={toneOf(group.alert)} />,
        label: <AlertText {...group} />,
        onSelect: () => void navigate({ to }),
      }))}
    />
  )
}

const AlertText = ({ alert, similar }: AlertGroup) => (
  <span className="flex max-w-sm min-w-0 flex-1 items-baseline justify-between gap-3 whitespace-normal">
    <span>
      <Sentence text={alert.message + similarText(similar)} />
    </span>
    {alert.since && (
      <span className="shrink-0 text-sm text-ink-muted">
        <Age iso={alert.since} />
      </span>
    )}
  </span>
)

/** Returns a function that checks whether an alert is about the page's organization as a whole. */
function useIsOrganizationAlert(): (alert: Alert) => boolean {
  const { organization_id } = useProject()
  return (alert) => alert.project_id === '' && alert.organization_id === organization_id
}

/** The alerts of a project and its organization, at the top of a page. */
export function ProjectAlerts({ projectId }: { projectId: string }) {
  const { tenantAlerts } = useAlerts()
  const isOrganizationAlert = useIsOrganizationAlert()
  const relevant = tenantAlerts.filter(
    (alert) => alert.project_id === projectId || isOrganizationAlert(alert),
  )
  const actionOf = (group: AlertGroup) => (
    <ButtonLink
      size="small"
      kind={lacksPaymentMethod(group.alert) ? 'primary' : 'plain'}
      {...({ to: pathOf(group, projectId, false) } as LinkProps)}
    >
      {linkTextOf(group)}
    </ButtonLink>
  )
  return <AlertNotes alerts={relevant} actionOf={actionOf} isCounted />
}

interface ResourceAlertsProps extends Pick<AlertNotesProps, 'actionOf' | 'detail'> {
  resourceId: string
}

/** The alerts of one resource, with details that help to find the cause. */
export function ResourceAlerts({ resourceId, ...rest }: ResourceAlertsProps) {
  const { tenantAlerts } = useAlerts()
  const alerts = tenantAlerts.filter(({ resource_id }) => resource_id === resourceId)
  return <AlertNotes alerts={alerts} {...rest} />
}

/** Returns whether there is an alert that the VM crashed. */
export const useHasCrashAlert = (vmId: string): boolean =>
  useAlerts().tenantAlerts.some(({ kind, resource_id }) => kind === 'crashed' && resource_id === vmId)

const lacksPaymentMethod = ({ kind, resource_type }: Alert) =>
  kind === 'payment' && resource_type === 'organization'

/** Returns whether there is no valid payment method. Users add one in another tab, so this polls often. */
export function useLacksPaymentMethod(): boolean {
  const { organization_id } = useProject()
  const { data } = useQuery({
    ...read('organizationAlertList', { params: { organization_id } }),
    enabled: organization_id !== '',
    refetchInterval: ({ state }) => (state.data?.items.some(lacksPaymentMethod) ? 2_000 : false),
  })
  return data?.items.some(lacksPaymentMethod) ?? false
}

/** Alerts about a missing payment method, for pages that create billed resources. */
export function PaymentMethodAlert({ action }: { action: ReactNode }) {
  const alerts = usePaymentAlerts().filter(lacksPaymentMethod)
  return <AlertNotes alerts={alerts} actionOf={() => action} />
}

/** Returns the alerts about payment methods and invoices of the organization. */
export function usePaymentAlerts(): Alert[] {
  const { tenantAlerts } = useAlerts()
  const isOrganizationAlert = useIsOrganizationAlert()
  return tenantAlerts.filter((alert) => alert.kind === 'payment' && isOrganizationAlert(alert))
}

/** Returns whether there are alerts about payments; undefined until they are loaded. */
export function useHasPaymentAlert(): boolean | undefined {
  const { organization_id } = useProject()
  const { data } = useQuery(read('organizationAlertList', { params: { organization_id } }))
  return data?.items.some(({ kind, project_id }) => kind === 'payment' && project_id === '')
}

/** Alerts about payment methods and invoices, for the billing page. */
export function PaymentAlerts({ actionOf }: Pick<AlertNotesProps, 'actionOf'>) {
  return <AlertNotes alerts={usePaymentAlerts()} actionOf={actionOf} />
}

/** Returns the names of resources with a stuck operation, by ID. Operators get those of all tenants. */
export function useStuck(): ReadonlyMap<string, string> {
  const { tenantAlerts, fleetAlerts } = useAlerts()
  return useMemo(
    () =>
      new Map(
        [...fleetAlerts, ...tenantAlerts].flatMap(({ kind, resource_id, name }) =>
          kind === 'stuck' ? [[resource_id, name]] : [],
        ),
      ),
    [tenantAlerts, fleetAlerts],
  )
}

interface AlertNotesProps {
  alerts: Alert[]
  /** Returns a button or link that helps to resolve the alert. */
  actionOf?: ((group: AlertGroup) => ReactNode) | undefined
  isCounted?: boolean
  /** Shown below the alerts. */
  detail?: ReactNode
}

const looks = { bad: 'border-red/50 bg-red-soft', warn: 'border-amber/50 bg-amber-soft' }

/** The box is red if at least one alert is severe. */
function AlertNotes({ alerts, actionOf, isCounted = false, detail }: AlertNotesProps) {
  if (alerts.length === 0) return null
  const groups = groupAlerts(alerts)
  const look = looks[alerts.some((alert) => toneOf(alert) === 'bad') ? 'bad' : 'warn']
  return (
    <section aria-label="Alerts" className={`rounded-md border ${look}`}>
      {isCounted && <h2 className="px-4 pt-2.5 font-medium">{countText(alerts.length)}</h2>}
      <ul className="divide-y divide-line">
        {groups.slice(0, 5).map(({ alert, similar }) => (
          <li
            key={keyOf(alert)}
            className="flex flex-wrap items-center justify-end gap-x-3 gap-y-2 px-4 py-2.5"
          >
            <span className="flex min-w-0 flex-[1_1_240px] gap-3">
              <span className="flex h-5 items-center">
                <Mark tone={toneOf(alert)} />
              </span>
              <span>
                <Sentence text={alert.message + similarText(similar)} />
              </span>
            </span>
            {actionOf?.({ alert, similar })}
          </li>
        ))}
        {groups.length > 5 && (
          <li className="px-4 py-2 text-ink-muted">{groups.length - 5} more in the alerts menu.</li>
        )}
      </ul>
      {detail}
    </section>
  )
}
