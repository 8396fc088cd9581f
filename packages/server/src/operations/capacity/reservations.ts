import type { EventType, ReservationCreate } from '@slipway/contract'
import { vmType, vmTypes } from '@slipway/contract'
import { Failure, invalidField, requireFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import type { Database, Tx } from '../../postgres/database.ts'
import { readServiceTime } from '../../postgres/ping.ts'
import { setPrices } from '../../store/billing/prices.ts'
import { closeUsage, openUsage } from '../../store/billing/usage.ts'
import { listOpenHosts, lockHosts } from '../../store/capacity/holds.ts'
import { lockQueues } from '../../store/capacity/queues.ts'
import {
  findReservation,
  insertReservation,
  listStockHosts,
  lockReservation,
  lockVmsOfReservation,
  type ReservationRow,
  recordDelivery,
  releaseReservedGpus,
  reservationProduct,
  reservedProduct,
  setEnded,
  updateReservation,
} from '../../store/capacity/reservations.ts'
import { findAnyVm } from '../../store/compute/vms.ts'
import { emit, type Requester } from '../../store/events/events.ts'
import { findProjectScope } from '../../store/identity/access.ts'
import { reservationView } from '../../views/capacity.ts'
import { requireLocation } from '../catalogue.ts'
import { collectGpus } from './collect.ts'
import { offerGpus } from './offer.ts'
import { changeReservationOfVm } from './reserved-vms.ts'

/** How soon the service searches again for missing GPUs. GPUs that become free are collected immediately. */
const retryS = 600

/**
 * Creates a reservation. The service starts to collect its GPUs `collectBeforeH` hours before the reservation
 * begins, or right after the commit if that time has passed.
 */
export async function createReservation(
  tx: Tx,
  by: Requester,
  body: ReservationCreate,
  { collectBeforeH }: { collectBeforeH: number },
): Promise<ReservationRow> {
  const type = vmType(body.type)!
  const [startsAt, endsAt] = [new Date(body.contract_start_date), new Date(body.contract_end_date)]
  if (endsAt <= startsAt) throw invalidField('contract_end_date', 'must be after contract_start_date')
  if (endsAt <= (await readServiceTime(tx))) throw invalidField('contract_end_date', 'must be in the future')
  await requireLocation(tx, body.location)
  await requireProjects(tx, body.organization_id, 'billing_project_id', [body.billing_project_id])
  await requireProjects(tx, body.organization_id, 'projects', body.projects ?? [])
  const id = uuid()
  await insertReservation(tx, {
    id,
    organizationId: body.organization_id,
    billingProjectId: body.billing_project_id,
    projects: body.projects ?? [],
    type: type.name,
    family: type.family,
    unitGpus: type.gpuCount,
    location: body.location,
    quantity: body.count * type.gpuCount,
    startsAt,
    endsAt,
    collectsAt: new Date(startsAt.getTime() - collectBeforeH * 3_600_000),
    usdPerGpuHour: String(body.usd_per_gpu_hour),
    deliveryDeadline: body.delivery_deadline ? new Date(body.delivery_deadline) : null,
  })
  await setPrices(
    tx,
    [
      { product_name: reservationProduct(id), unit: 'gpu_hour', usd: String(body.usd_per_gpu_hour) },
      // Smaller types of the family may use the reservation too.
      ...vmTypes
        .filter(({ family }) => family === type.family)
        .map(({ name }) => ({ product_name: reservedProduct(name), unit: 'vm_hour' as const, usd: '0' })),
    ],
    { onlyUnset: true },
  )
  const reservation = (await findReservation(tx, id))!
  await emitReservation(tx, 'reservation.created', reservation, by)
  tx.signal('capacity')
  return reservation
}

async function requireProjects(tx: Tx, organizationId: string, field: string, ids: string[]): Promise<void> {
  for (const id of ids)
    if ((await findProjectScope(tx, id))?.organizationId !== organizationId)
      throw invalidField(field, `${id} is not a project of the organization`)
}

export async function changeReservation(
  tx: Tx,
  by: Requester,
  id: string,
  change: { contract_end_date?: string; projects?: string[] },
): Promise<ReservationRow> {
  const before = requireFound('reservation', await findReservation(tx, id))
  const endsAt = change.contract_end_date === undefined ? null : new Date(change.contract_end_date)
  if (endsAt && (endsAt <= before.starts_at || endsAt <= (await readServiceTime(tx))))
    throw invalidField('contract_end_date', 'must be after the start, and in the future')
  await requireProjects(tx, before.organization_id, 'projects', change.projects ?? [])
  if (!(await updateReservation(tx, { id, endsAt, projects: change.projects ?? null })))
    throw new Failure('conflict', 'The reservation has ended.')
  const reservation = (await findReservation(tx, id))!
  await emitReservation(tx, 'reservation.updated', reservation, by)
  tx.signal('capacity')
  return reservation
}

export async function endReservation(tx: Tx, by: Requester, id: string): Promise<ReservationRow> {
  const before = requireFound('reservation', await findReservation(tx, id))
  if (before.ended_at) throw new Failure('conflict', 'The reservation has already ended.')
  await end(tx, before, by)
  return (await findReservation(tx, id))!
}

/** Maintains a reservation: collects GPUs, meters the delivered ones, warns before the end, and ends it. */
export async function maintainReservation(database: Database, id: string): Promise<void> {
  const before = await findReservation(database, id)
  if (!before || before.ended_at) return
  const now = await readServiceTime(database)
  if (now >= before.ends_at) return database.transaction((tx) => end(tx, before))
  await database.transaction(async (tx) => {
    const queue = { location: before.location, family: before.family }
    const hostIds = (await listStockHosts(tx, queue)).map((host) => host.id)
    await lockHosts(tx, hostIds)
    await lockQueues(tx, [queue])
    if (hostIds.length > 0) await collectGpus(tx, queue, await listOpenHosts(tx, hostIds))
  })
  await database.transaction((tx) => updateDelivery(tx, id, { checkedAt: now }))
}

/** Meters the delivered GPUs once the reservation has begun, and emits events for changes. */
async function updateDelivery(tx: Tx, id: string, { checkedAt }: { checkedAt: Date }): Promise<void> {
  if (!(await lockReservation(tx, id))) return
  const reservation = (await findReservation(tx, id))!
  const { quantity, delivered_gpus, metered_gpus, billing_project_id: projectId } = reservation
  const hasBegun = reservation.state !== 'scheduled'
  const meteredGpus = hasBegun ? delivered_gpus : 0
  if (meteredGpus !== metered_gpus) {
    if (metered_gpus > 0) await closeUsage(tx, id)
    if (meteredGpus > 0)
      await openUsage(tx, {
        projectId,
        location: reservation.location,
        resourceType: 'reservation',
        resourceId: id,
        resourceName: reservation.type,
        labels: {},
        productName: reservationProduct(id),
        quantity: meteredGpus,
      })
  }
  const isDelivered = delivered_gpus === quantity
  const isShort = hasBegun && !isDelivered
  const noted = await recordDelivery(tx, {
    id,
    checkedAt,
    meteredGpus,
    isDelivered,
    isShort,
    retryS: isDelivered ? null : retryS,
  })
  if (isDelivered && (!reservation.delivered_at || reservation.is_short))
    await emitReservation(tx, 'reservation.delivered', reservation)
  if (isShort && !reservation.is_short) await emitReservation(tx, 'reservation.short', reservation)
  // If several warnings are due, only the latest is sent.
  if (noted!.due_notices > reservation.notices) await emitReservation(tx, 'reservation.ending', reservation)
}

/**
 * Ends a reservation. Its VMs continue to run at the list price. GPUs that none of them uses are offered to the
 * queue.
 */
async function end(tx: Tx, { id, owned }: ReservationRow, by?: Requester): Promise<void> {
  const vms = await lockVmsOfReservation(tx, id)
  const hostIds = owned.map(({ host_id }) => host_id)
  await lockHosts(tx, hostIds)
  if (!(await setEnded(tx, id))) return
  await closeUsage(tx, id)
  for (const vm of vms) await changeReservationOfVm(tx, (await findAnyVm(tx, vm.id))!, null)
  await releaseReservedGpus(tx, id)
  await offerGpus(tx, hostIds)
  await emitReservation(tx, 'reservation.ended', (await findReservation(tx, id))!, by)
}

type ReservationEvent = Extract<EventType, `reservation.${string}`>

/** Events of reservations go to the organization's log, without the price, because members may not see prices. */
const emitReservation = (tx: Tx, type: ReservationEvent, row: ReservationRow, by?: Requester) =>
  emit(tx, {
    ...(by && { actor: by.actor, requestId: by.requestId, clientAddress: by.clientAddress }),
    type,
    resourceType: 'reservation',
    resourceId: row.id,
    organizationId: row.organization_id,
    data: reservationView(row, false),
  })
