import { time } from '../postgres/time.ts'
import type { Services } from '../services.ts'
import { emitForHostVms, listMaintenanceDue, takeMaintenanceNotice } from '../store/fleet/maintenance.ts'

/** Notifies the tenants 7 days, 24 hours and 1 hour before announced maintenance. */
export async function announceMaintenance({ database }: Services): Promise<void> {
  for (const { id } of await listMaintenanceDue(database))
    await database.transaction(async (tx) => {
      const due = await takeMaintenanceNotice(tx, id)
      if (!due) return
      const { location, maintenance_at, maintenance_note: note } = due
      const data = { location, maintenance_at: time(maintenance_at), note }
      await emitForHostVms(tx, id, 'vm.maintenance_scheduled', data)
    })
}
