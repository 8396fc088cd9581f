import { admitVmStop } from '../operations/vm/stop.ts'
import type { Services } from '../services.ts'
import { listVmsOfSuspendedOrganizations } from '../store/compute/vm-list.ts'
import { lockVm } from '../store/compute/vms.ts'
import { system } from '../store/events/events.ts'

const maxVms = 100

/** Stops the VMs of organizations whose suspension includes stopping VMs, even VMs that are started later. */
export async function stopSuspendedVms({ database, log }: Services): Promise<void> {
  for (const { id, project_id } of await listVmsOfSuspendedOrganizations(database, maxVms))
    await database
      .transaction(async (tx) => {
        const vm = await lockVm(tx, { projectId: project_id, id })
        if (vm) await admitVmStop(tx, { ...system, projectId: project_id }, vm)
      })
      .catch((error) =>
        log.info({ err: error, vm: id }, 'VM of a suspended organization not stopped yet, will retry'),
      )
}
