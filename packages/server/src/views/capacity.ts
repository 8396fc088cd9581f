import { createHash } from 'node:crypto'
import type {
  AdminCapacityRequest,
  CapacityRequest,
  CapacityRequestCreate,
  Reservation,
  VmCreate,
} from '@slipway/contract'
import { time } from '../postgres/time.ts'
import type { RequestRecordRow } from '../store/capacity/requests.ts'
import type { ReservationRow } from '../store/capacity/reservations.ts'

/** Scripts may contain secrets, so callers without `mayReadScripts` see a digest instead. */
export const capacityRequestView = (row: RequestRecordRow, mayReadScripts: boolean): CapacityRequest => ({
  id: row.id,
  state: row.state,
  on_available: row.on_available,
  request: { ...(mayReadScripts ? row.body : withoutScripts(row.body)) },
  gpus_wanted: row.gpus,
  gpus_held: row.gpus_held,
  position: row.position,
  blocked_by: row.blocked_by,
  estimate: {
    earliest_at: time(row.earliest_at),
    likely_at: time(row.likely_at),
    latest_at: time(row.latest_at),
    basis: row.basis ?? 'none',
    hit_rate: row.hit_rate,
    computed_at: time(row.estimated_at),
  },
  location: row.location,
  resource_id: row.resource_id ?? '',
  operation_id: (row.due_at === null && row.operation_id) || '',
  error: row.error as CapacityRequest['error'],
  until: time(row.until),
  held_until: row.on_available === 'hold' ? time(row.held_until) : '',
  created_at: time(row.created_at),
  updated_at: time(row.updated_at),
  labels: row.labels,
})

export const adminCapacityRequestView = (row: RequestRecordRow): AdminCapacityRequest => ({
  ...capacityRequestView(row, false),
  organization_id: row.organization_id,
  project_id: row.project_id,
  family: row.family,
})

function withoutScripts(body: CapacityRequestCreate): CapacityRequestCreate {
  const { vm, instance_group: group } = body
  return {
    ...body,
    ...(vm && { vm: withDigests(vm) }),
    ...(group?.vm && { instance_group: { ...group, vm: withDigests(group.vm) } }),
  }
}

function withDigests<Vm extends Pick<VmCreate, 'startup_script' | 'shutdown_script'>>(vm: Vm): Vm {
  const hidden = { ...vm }
  for (const name of ['startup_script', 'shutdown_script'] as const)
    if (hidden[name]) hidden[name] = `sha256:${createHash('sha256').update(hidden[name]).digest('hex')}`
  return hidden
}

/** Only admins and operators see the price (`mayReadPrice`). */
export const reservationView = (row: ReservationRow, mayReadPrice: boolean): Reservation => ({
  id: row.id,
  organization_id: row.organization_id,
  billing_project_id: row.billing_project_id,
  reservation_type: 'capacity',
  product_line: row.family,
  type: row.type,
  state: row.state,
  duration: row.months,
  quantity: row.quantity,
  delivered_quantity: row.delivered_gpus,
  used_quantity: row.used_gpus,
  locations: [row.location],
  projects: row.projects,
  vm_ids: row.vm_ids,
  contract_start_date: time(row.starts_at),
  contract_end_date: time(row.ends_at),
  price: mayReadPrice ? row.usd_per_gpu_hour : '',
  created_at: time(row.created_at),
})
