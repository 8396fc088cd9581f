import type { Event } from '@slipway/sdk'

const decimals = (digits: number) =>
  new Intl.NumberFormat(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits })
const oneDecimal = decimals(1)
const twoDecimals = decimals(2)
const fourDecimals = decimals(4)

/** Prices below 0.10 USD have four decimals. */
const usdDigits = (value: number) => (value !== 0 && Math.abs(value) < 0.1 ? 4 : 2)

/** Rounds an amount as `usd` shows it. */
export const shownUsd = (value: number): number => Number(value.toFixed(usdDigits(value)))

export function usd(value: number | null | undefined): string {
  if (value === null || value === undefined) return 'no price set'
  const format = usdDigits(value) === 4 ? fourDecimals : twoDecimals
  return `${format.format(value)} USD`
}

/** Formats an amount without its unit, for columns with the unit in their title. */
export const amount = (value: number): string => twoDecimals.format(value)
export const money = (value: number): string => `${amount(value)} USD`

/** Numbers, dates and percentages use the browser's locale. */
export const count = (value: number): string => wholeOrDecimal.format(value)

const wholeOrDecimal = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 })

const percents = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 0 })
/** 0.5 becomes "50%". */
export const percent = (share: number): string => percents.format(share)

/** The time zone of all local times, such as "GMT+1". */
export const timeZone: string =
  new Intl.DateTimeFormat(undefined, { timeZoneName: 'short' })
    .formatToParts()
    .find(({ type }) => type === 'timeZoneName')?.value ?? ''
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

/** Shows only the largest unit. From 1 to 10 hours, also shows the minutes. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 10 && minutes % 60 > 0) return `${hours} h ${minutes % 60} min`
  if (hours < 48) return `${hours} h`
  return `${Math.floor(hours / 24)} d`
}

/** The time until something happens, rounded to what `duration` shows: "90 d" right after a key for 90 days was created. */
export function timeLeft(ms: number): string {
  const unitMs =
    ms < 60_000 ? 1000 : ms < 10 * 3_600_000 ? 60_000 : ms < 48 * 3_600_000 ? 3_600_000 : 86_400_000
  return duration(Math.max(Math.round(ms / unitMs), 1) * unitMs)
}

export function preciseDuration(ms: number): string {
  if (ms < 1) return '< 1 ms'
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${oneDecimal.format(ms / 1000)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
}

const days = { month: 'short', day: 'numeric' } as const
const minutes = { ...days, hour: 'numeric', minute: '2-digit' } as const
const precisions = { days, minutes, seconds: { ...minutes, second: '2-digit' } } as const
const formats = new Map<string, Intl.DateTimeFormat>()

/** Shows the year only if it is not the current one. The time zone is for times outside of tables. */
export function localDate(
  iso: string,
  precision: keyof typeof precisions = 'minutes',
  hasZone = false,
): string {
  if (!iso) return '–'
  const date = new Date(iso)
  const hasYear = date.getFullYear() !== new Date().getFullYear()
  const key = `${precision} ${hasYear} ${hasZone}`
  const format =
    formats.get(key) ??
    new Intl.DateTimeFormat(undefined, {
      ...precisions[precision],
      ...(hasYear && { year: 'numeric' }),
      ...(hasZone && { timeZoneName: 'short' }),
    })
  formats.set(key, format)
  return format.format(date)
}

/** The title of a column of local times, such as "Created (GMT+1)". */
export const zonedTitle = (title: string): string => `${title} (${timeZone})`

export const utcDate = (iso: string): string => (iso ? `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC` : '')

/** Returns up to three names, and the number of further names: "a, b, c and 2 more". */
export const firstNames = (names: string[]): string =>
  names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${count(names.length - 3)} more` : '')

/** "500GiB" becomes "500 GiB". */
export const sizeText = (size: string): string =>
  size.replace(/^(\d+)([GT]iB)$/, (_, value, unit) => `${count(Number(value))}\u00a0${unit}`)

export const shortId = (id: string): string => id.slice(-8)

export const quotaLabel = (name: string): string => {
  const words: Record<string, string> = {
    a40_gpus: 'A40 GPUs',
    a100_gpus: 'A100 40GB GPUs',
    'a100-80gb_gpus': 'A100 80GB GPUs',
    'l40s-48gb_gpus': 'L40S GPUs',
    vms: 'VMs',
    disk_gib: 'Disk (GiB)',
    shared_volume_tib: 'Shared volume (TiB)',
    firewall_rules: 'Firewall rules',
    projects: 'Projects',
    networks: 'Networks',
    subnets: 'Subnets',
    access_keys: 'Access keys',
    ssh_keys: 'SSH keys',
    instance_groups: 'Groups',
    instance_templates: 'Templates',
    capacity_requests: 'Capacity requests',
    reserved_addresses: 'Reserved addresses',
    custom_images: 'Custom images',
    snapshots: 'Snapshots',
    captured_gib: 'Snapshots and images (GiB)',
    members: 'Members',
    webhooks: 'Webhooks',
  }
  return words[name] ?? name
}

/** "vm.running" becomes "VM running". The results of operations become "VM created" and "Create VM failed". */
export function eventText({
  type,
  resource_type,
  data,
}: Pick<Event, 'type' | 'resource_type' | 'data'>): string {
  const [, end = ''] = type.split('.')
  if (!type.startsWith('operation.') || typeof data.operation_name !== 'string') return eventTypeText(type)
  const past = pastForms[data.operation_name]
  return end === 'succeeded' && past
    ? stepText(`${changedText(data.operation_name, resource_type)} ${past}`)
    : `${changeText(data.operation_name, resource_type)} ${end}`
}

/** What has happened when an operation has succeeded, in the words of events without an operation. */
const pastForms: Record<string, string> = {
  CREATE: 'created',
  UPDATE: 'updated',
  DELETE: 'deleted',
  START: 'started',
  STOP: 'stopped',
  RESET: 'reset',
  RESIZE: 'resized',
  ATTACH: 'attached',
  DETACH: 'detached',
  REPLACE: 'replaced',
}

/** What an operation changes, which is not always the resource that it belongs to. */
function changedText(operationName: string, resourceType: string): string {
  if (/^(AT|DE)TACH$/.test(operationName)) return 'disks'
  if (operationName === 'REPLACE' && resourceType === 'instance_group') return 'group members'
  return resourceText(resourceType)
}

/** "CREATE" and "firewall_rule" become "Create firewall rule". */
export const changeText = (operationName: string, resourceType: string): string =>
  `${stepText(operationName.toLowerCase())} ${changedText(operationName, resourceType)}`

/** The texts of event types whose text cannot be derived from the type. */
const eventTexts: Record<string, string> = {
  'capacity_request.held': 'GPUs held',
  'member.accepted': 'Invitation accepted',
  'operator.read': 'Viewed by operator',
  'organization.alert_recipients_set': 'Alert recipients changed',
  'organization.payment_active': 'Payments active',
  'organization.payment_declined': 'Payment declined',
  'organization.payment_method_removed': 'Payment method removed',
  'organization.payment_method_set': 'Payment method set',
  // This can happen before the term of the reservation begins.
  'reservation.delivered': 'All reserved GPUs assigned',
  'reservation.ending': 'Reservation ends soon',
  'reservation.short': 'Reserved GPUs missing',
  'user.operator_granted': 'Operator invitation accepted',
  'webhook.test': 'Webhook test sent',
  'user.operator_removed': 'Operator role removed',
  'user.reset_mailed': 'Password reset link sent',
  'user.reset_offered': 'Password reset link created',
  'user.setup': 'First operator created',
  'user.totp_enabled': 'Two-factor authentication turned on',
  'user.totp_removed': 'Two-factor authentication turned off',
  'vm.host_draining': 'Host will be taken out of service',
  'vm.maintenance_cancelled': 'Host maintenance was cancelled',
  'vm.maintenance_scheduled': 'Host maintenance was announced',
  'vm.shutoff': 'VM stopped',
  'vm.unreachable': 'VM unreachable: its host does not respond',
}

/** "disk.available" becomes "Disk available", "vm.shutoff" becomes "VM stopped". */
export const eventTypeText = (type: string): string =>
  eventTexts[type] ??
  stepText(shortType(type))
    .replace(/^(Vm|Ssh|Gpu)\b/, (word) => word.toUpperCase())
    .replace(' os disk', ' OS disk')

/** The console says "group" and "template" instead of "instance group" and "instance template". */
const shortType = (type: string): string => type.replace(/^instance_/, '')

export const resourceText = (type: string): string =>
  shortType(type)
    .replaceAll('_', ' ')
    .replace(/^(vm|ssh|gpu)\b/, (word) => word.toUpperCase())

export const stepText = (name: string): string => {
  const words = name.replaceAll(/[._-]/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
