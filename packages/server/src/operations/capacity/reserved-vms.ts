import { vmStateTable } from '@slipway/contract'
import { Failure, requireFound } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { closeUsage, openUsage } from '../../store/billing/usage.ts'
import { freeSomeHeld, lockHosts } from '../../store/capacity/holds.ts'
import {
  findReservation,
  reservedProduct,
  scheduleReservationCheck,
  setReservationOfGpus,
  setReservationOfVm,
} from '../../store/capacity/reservations.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import { findAnyVm, type VmRow } from '../../store/compute/vms.ts'
import type { OrganizationRequester } from '../../store/events/events.ts'
import type { ProjectRequester } from '../admission.ts'
import { recordAnnotation } from '../annotations.ts'
import { offerGpus } from './offer.ts'

/**
 * Moves a VM into a reservation or out of it. From now on, the VM is billed accordingly. The transaction has locked
 * the VM.
 */
export async function changeReservationOfVm(tx: Tx, vm: VmRow, id: string | null): Promise<void> {
  const isMetered = vmStateTable[vm.state].isBilled && !vm.os_disk_lost_at && !vm.billing_paused_at
  if (isMetered) await closeUsage(tx, vm.id)
  await setReservationOfVm(tx, vm.id, id)
  if (isMetered)
    await openUsage(tx, {
      projectId: vm.project_id,
      location: vm.location,
      resourceType: 'vm',
      resourceId: vm.id,
      resourceName: vm.name,
      labels: vm.labels,
      productName: id ? reservedProduct(vm.type) : vm.type,
      quantity: 1,
      ...(id && { reservationId: id }),
    })
}

/**
 * RESERVE: the VM's GPUs become part of the reservation. In exchange, the same number of GPUs that were held for
 * the reservation are offered to other requests, or fewer if the reservation was short of GPUs.
 */
export async function reserveVm(
  tx: Tx,
  by: ProjectRequester & OrganizationRequester,
  vm: VmRow,
  reservationId: string,
): Promise<BegunOperation> {
  const found = await findReservation(tx, reservationId)
  const reservation = requireFound(
    'reservation',
    found?.organization_id === by.organizationId ? found : undefined,
  )
  const { location, family, projects } = reservation
  if (vm.state !== 'STATE_RUNNING')
    throw new Failure('conflict', `RESERVE requires the VM to be in STATE_RUNNING; it is in ${vm.state}.`)
  if (vm.reservation_id) throw new Failure('conflict', `The VM ${vm.name} already uses a reservation.`)
  if (reservation.state !== 'active' && reservation.state !== 'late')
    throw new Failure(
      'conflict',
      `RESERVE requires an active or late reservation; the state of this reservation is ${reservation.state}.`,
    )
  if (location !== vm.location || family !== vm.family)
    throw new Failure(
      'conflict',
      `The VM ${vm.name} (${vm.family} in ${vm.location}) does not fit the reservation, which is for ${family} GPUs in ${location}.`,
    )
  if (projects.length > 0 && !projects.includes(vm.project_id))
    throw new Failure('conflict', 'This project cannot use the reservation.')
  const hostIds = [...new Set([vm.host_id!, ...reservation.owned.map(({ host_id }) => host_id)])]
  await lockHosts(tx, hostIds)
  const freed = await freeSomeHeld(tx, { heldFor: reservationId, count: vm.gpu_count })
  const missing = reservation.quantity - reservation.owned.reduce((sum, { gpus }) => sum + gpus, 0)
  if (freed.length + missing < vm.gpu_count)
    throw new Failure(
      'conflict',
      `The reservation has too few free GPUs for the VM ${vm.name} (GPUs needed: ${vm.gpu_count}); other VMs use the reservation's GPUs.`,
    )
  await setReservationOfGpus(tx, vm.id, reservationId)
  return finish(
    tx,
    by,
    vm,
    reservationId,
    freed.map(({ host_id }) => host_id),
  )
}

/** UNRESERVE: the VM keeps its GPUs, and other GPUs are collected for the reservation. */
export async function unreserveVm(tx: Tx, by: ProjectRequester, vm: VmRow): Promise<BegunOperation> {
  if (!vm.reservation_id) throw new Failure('conflict', `The VM ${vm.name} uses no reservation.`)
  await lockHosts(tx, [vm.host_id!])
  await setReservationOfGpus(tx, vm.id, null)
  await scheduleReservationCheck(tx, vm.reservation_id)
  return finish(tx, by, vm, null, [])
}

async function finish(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  id: string | null,
  freedHosts: string[],
): Promise<BegunOperation> {
  await changeReservationOfVm(tx, vm, id)
  if (id) await scheduleReservationCheck(tx, id)
  await offerGpus(tx, freedHosts)
  tx.signal('capacity')
  const changed = (await findAnyVm(tx, vm.id))!
  const request = id ? { action: 'RESERVE', reservation_id: id } : { action: 'UNRESERVE' }
  return recordAnnotation(tx, by, 'vm', changed, request, await vmViewOf(tx, vm.id))
}
