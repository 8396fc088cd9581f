import type { Alert, AlertKind, OperationName } from '@slipway/contract'
import { monthTitle } from '../domain/months.ts'
import { time } from '../postgres/time.ts'
import type { AlertRow } from '../store/finding/alerts.ts'

const usd = (cents: unknown) =>
  (Number(cents) / 100).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })

const doing: Record<OperationName, string> = {
  CREATE: 'Creating',
  UPDATE: 'Changing',
  DELETE: 'Deleting',
  START: 'Starting',
  STOP: 'Stopping',
  RESET: 'Resetting',
  RESIZE: 'Resizing',
  ATTACH: 'Attaching disks to',
  DETACH: 'Detaching disks from',
  REPLACE: 'Replacing',
}

const duration = (seconds: unknown) => `${Math.abs(Number(seconds)).toLocaleString('en-US')} s`

/** Formats a time for readers, such as 2026-12-01 06:00 UTC. */
const minuteOf = (at: unknown): string => `${time(String(at)).slice(0, 16).replace('T', ' ')} UTC`

const sentence = (text: unknown): string => `${String(text ?? '').replace(/\.$/, '')}.`

/** Explains how to move a VM off its host. A VM with disks on shared storage can start on another host. */
const howToMove = ({ can_move }: Record<string, unknown>): string =>
  can_move
    ? 'Stop and start it to move it to another host.'
    : 'Its disks are on this host, so back up your data and create the VM again.'

const replacesMembers = (type: string, { operation_name }: Record<string, unknown>) =>
  type === 'instance_group' && operation_name === 'REPLACE'

const messages: Record<AlertKind, (row: AlertRow) => string> = {
  crashed: ({ name, detail }) =>
    detail.is_os_disk_lost
      ? `The OS disk of ${name} was lost. If its host does not report the disk again, delete the VM and create a new one.`
      : `${name} crashed and is still billed. Check its serial log, then reset it, or stop it to end billing.`,
  unreachable: ({ name }) =>
    `${name} is unreachable because its host does not report. It is not billed until the host is back.`,
  creation_failed: ({ name, detail }) =>
    `${name} could not be created: ${sentence(detail.reason)} Nothing was kept, and nothing is billed. Create it again.`,
  maintenance: ({ name, detail }) =>
    `The host of ${name} in ${detail.location} ${detail.has_begun ? 'has been in maintenance since' : 'is scheduled for maintenance at'} ${minuteOf(detail.at)}${detail.note ? ` (${detail.note})` : ''}. ${howToMove(detail)}`,
  draining: ({ name, detail }) =>
    `The host of ${name} in ${detail.location} will be taken out of service. ${name} keeps running. ${howToMove(detail)}`,
  expiring: ({ name, detail }) =>
    `${name} will be ${detail.on_expiry === 'delete' ? 'deleted' : 'stopped'} at ${time(String(detail.expires_at))}: extend its TTL to keep it.`,
  stuck: ({ name, resource_type, detail }) =>
    `${doing[detail.operation_name as OperationName]}${replacesMembers(resource_type, detail) ? ' members of' : ''} the ${resource_type.replaceAll('_', ' ').replace(/^vm$/, 'VM')} ${name || '(deleted)'} failed ${detail.attempts === 1 ? 'once' : `${detail.attempts} times`} and ${detail.is_stuck ? 'is stuck' : 'is being retried'}. The operator has been notified (operation ${detail.operation_id}).`,
  payment: ({ name, resource_type, detail }) =>
    resource_type === 'invoice'
      ? `The invoice of ${name} for ${monthTitle(`${detail.month}-01`)}, ${usd(detail.usd_cents)} USD, is not paid.`
      : `The payment method of ${name} ${detail.payment_state === 'declined' ? 'was declined' : 'was removed'}: nothing can be created or started until an owner adds another one.`,
  budget: ({ name, detail }) =>
    `Project "${name}" is at ${detail.percent}% of its monthly budget of ${Number(detail.monthly_usd).toLocaleString('en-US')} USD.${detail.is_hard_stop ? ' At 100%, nothing new can be created or started.' : ''}`,
  clock: ({ detail }) =>
    Number(detail.seconds) > 0
      ? `PostgreSQL's clock jumped forward by ${duration(detail.seconds)}. VMs do not expire for 15 minutes after that. Extend the TTL of VMs that you want to keep, and check the clock.`
      : `PostgreSQL's clock jumped back by ${duration(detail.seconds)}. The service's time is ${duration(detail.ahead_seconds)} ahead of it and runs more slowly until both agree. Check the clock.`,
  location_unread: ({ name, detail }) =>
    `The engine of ${name} cannot be read: ${sentence(detail.problem)} VMs keep running. Run slipway-server doctor to find the cause.`,
  host_problem: ({ name, detail }) => `${name} in ${detail.location}: ${sentence(detail.problem)}`,
  host_lost: ({ name, detail }) =>
    `${name} in ${detail.location} does not report. Repair the host, or forget it if it is permanently lost.`,
  gpu_fault: ({ name, detail }) =>
    detail.state === 'gone'
      ? `${detail.model} at ${name} in ${detail.location} is missing from its host’s reports.`
      : `${detail.model} at ${name} in ${detail.location} has been waiting for its reset for too long.`,
  mass_gpu_fault: ({ name, detail }) =>
    `${detail.count} VMs in ${name} have unhealthy GPUs at the same time. The faults probably have a common cause, such as power, cooling or a driver, so no VM is replaced automatically there.`,
  unhealthy: ({ name, detail }) =>
    `${name} has an unhealthy GPU: ${sentence(detail.reason)}${detail.is_replaced ? ' It will be replaced automatically as soon as GPUs are available.' : ''}`,
  webhook_failing: ({ name, detail }) =>
    `Deliveries to the webhook at ${name} have failed since ${minuteOf(detail.since)}. Check the receiver; each delivery is retried for 24 hours.`,
  quota_request: ({ name, detail }) =>
    `${name} requests a quota of ${Number(detail.max).toLocaleString('en-US')} for ${detail.quota}: ${sentence(detail.reason)} Approve or reject the request.`,
  reservation_late: ({ name, detail }) =>
    `The reservation of ${name} in ${detail.location} has ${detail.delivered} of ${detail.quantity} GPUs (${detail.family}). Only these are billed. Add hosts, or agree on a later start.`,
}

export const alertView = (row: AlertRow): Alert => ({
  kind: row.kind,
  resource_type: row.resource_type,
  resource_id: row.resource_id,
  name: row.name,
  project_id: row.project_id ?? '',
  organization_id: row.organization_id ?? '',
  since: time(row.since),
  message: messages[row.kind](row),
})
