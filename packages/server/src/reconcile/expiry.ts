import { admitVmDelete } from '../operations/vm/delete.ts'
import { admitVmStop } from '../operations/vm/stop.ts'
import { time } from '../postgres/time.ts'
import type { Services } from '../services.ts'
import { listExpiredVms, listVmsToWarn, lockExpiredVm, markWarned } from '../store/compute/vm-expiry.ts'
import { findAnyVm, lockVm } from '../store/compute/vms.ts'
import { emit, system } from '../store/events/events.ts'

const maxVms = 1_000

/** Emits one event for each VM that expires soon. */
export async function warnOfExpiry({ database }: Services): Promise<void> {
  for (const { id } of await listVmsToWarn(database, maxVms))
    await database.transaction(async (tx) => {
      const vm = await findAnyVm(tx, id)
      if (!vm || !(await markWarned(tx, id))) return
      await emit(tx, {
        type: 'vm.expiring',
        resourceType: 'vm',
        resourceId: id,
        projectId: vm.project_id,
        data: { name: vm.name, labels: vm.labels, expires_at: time(vm.expires_at), on_expiry: vm.on_expiry },
      })
    })
}

/** Stops or deletes expired VMs, depending on `on_expiry`. A protected VM is only stopped. */
export async function expireVms({ database, log }: Services): Promise<void> {
  for (const { id, project_id, on_expiry } of await listExpiredVms(database, maxVms))
    await database
      .transaction(async (tx) => {
        const vm = (await lockExpiredVm(tx, id)) && (await lockVm(tx, { projectId: project_id, id }))
        if (!vm) return
        const admit = on_expiry === 'delete' && !vm.is_protected ? admitVmDelete : admitVmStop
        await admit(tx, { ...system, projectId: project_id }, vm)
      })
      .catch((error) => log.info({ err: error, vm: id }, 'expired VM not stopped or deleted yet, will retry'))
}
