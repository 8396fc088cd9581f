import { Failure, invalidField } from '../domain/failure.ts'
import type { Tx } from '../postgres/database.ts'
import { time } from '../postgres/time.ts'
import type { Requester } from '../store/events/events.ts'
import type { HostRow } from '../store/fleet/fleet.ts'
import { clearMaintenance, emitForHostVms, setMaintenance } from '../store/fleet/maintenance.ts'
import { emitHost, readHost } from './hosts.ts'

/** Announces maintenance. The tenants are notified when a notice is due, which may be immediately. */
export async function scheduleMaintenance(
  tx: Tx,
  by: Requester,
  id: string,
  { at, note = '' }: { at: string; note?: string },
): Promise<HostRow> {
  const { name, location } = await readHost(tx, id)
  const date = new Date(at)
  if (Number.isNaN(date.getTime()))
    throw invalidField('at', 'is not a valid time; expected, for example, 2026-12-31T00:00:00Z')
  if (!(await setMaintenance(tx, { id, at: date, note }))) throw invalidField('at', 'must be in the future')
  await emitHost(tx, by, 'host.maintenance_scheduled', id, { name, location, at: time(date), note })
  return readHost(tx, id)
}

export async function cancelMaintenance(tx: Tx, by: Requester, id: string): Promise<HostRow> {
  const { name, location } = await readHost(tx, id)
  const cleared = await clearMaintenance(tx, id)
  if (!cleared) throw new Failure('not_found', `No maintenance is announced for host ${name}.`)
  await emitHost(tx, by, 'host.maintenance_cancelled', id, { name, location })
  if (cleared.is_awaited) await emitForHostVms(tx, id, 'vm.maintenance_cancelled', { location })
  return readHost(tx, id)
}
