import { chooseGpus, type OpenHost } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { holdGpus } from '../../store/capacity/holds.ts'
import type { Queue } from '../../store/capacity/queues.ts'
import {
  listShortReservations,
  type ShortReservation,
  scheduleReservationCheck,
} from '../../store/capacity/reservations.ts'

/**
 * Holds free GPUs for reservations that are short of GPUs: first whole units of their type, then partial
 * units, but never more than are missing. Partial units are completed when more GPUs become free. The
 * transaction has locked the hosts and the queue.
 */
export async function collectGpus(tx: Tx, { location, family }: Queue, hosts: OpenHost[]): Promise<void> {
  for (const reservation of await listShortReservations(tx, { location, family })) {
    const before = reservation.missing
    for (const host of hosts) await take(tx, reservation, host, false)
    for (const host of hosts) await take(tx, reservation, host, true)
    if (reservation.missing < before) {
      await scheduleReservationCheck(tx, reservation.id)
      tx.signal('capacity')
    }
  }
}

async function take(tx: Tx, reservation: ShortReservation, host: OpenHost, mayBegin: boolean): Promise<void> {
  const { id, unit_gpus, owned } = reservation
  const mine = owned.find(({ host_id }) => host_id === host.id) ?? { host_id: host.id, gpus: 0 }
  const partialUnits = owned.filter(({ gpus }) => gpus % unit_gpus > 0).length
  const mayBeginHere = mayBegin && partialUnits * unit_gpus < reservation.missing
  const count = countToTake(mine.gpus % unit_gpus, unit_gpus, Math.min(host.freeGpus, reservation.missing))
  const wanted = count > 0 || !mayBeginHere ? count : Math.min(host.freeGpus, unit_gpus, reservation.missing)
  const chosen = wanted > 0 ? (chooseGpus(host.gpus, wanted) ?? []) : []
  if (chosen.length === 0) return
  await holdGpus(
    tx,
    id,
    'reservation',
    chosen.map((gpu) => gpu.id),
  )
  host.gpus = host.gpus.filter((gpu) => !chosen.includes(gpu))
  host.freeGpus -= chosen.length
  if (mine.gpus === 0) owned.push(mine)
  mine.gpus += chosen.length
  reservation.missing -= chosen.length
}

/** Completes a partial unit first, then takes whole units. */
function countToTake(partial: number, unit: number, available: number): number {
  const completing = partial > 0 ? Math.min(unit - partial, available) : 0
  if (partial > 0 && completing < unit - partial) return completing
  return completing + Math.floor((available - completing) / unit) * unit
}
