import { requireFound } from '../../domain/failure.ts'
import { admitVmDelete } from '../../operations/vm/delete.ts'
import { admitVmStop } from '../../operations/vm/stop.ts'
import { time } from '../../postgres/time.ts'
import { listTenantVms, type TenantVmRow } from '../../store/compute/vm-list.ts'
import { findAnyVm, lockVm, type VmRow } from '../../store/compute/vms.ts'
import type { Context, Handlers } from '../context.ts'
import { idList } from '../filters.ts'
import { pageById } from '../pages.ts'
import { operationResponse } from './operations.ts'

const view = ({ created_at, host_id, ...row }: TenantVmRow) => ({
  ...row,
  host_id: host_id ?? '',
  created_at: time(created_at),
})

export const adminVmHandlers = {
  adminVmList(context) {
    const { tx, query } = context
    const filter = { organizationId: query.organization_id ?? null, ids: idList('ids', query.ids) }
    return pageById(context, (beforeId, limit) => listTenantVms(tx, { ...filter, beforeId, limit }), view)
  },

  async adminVmStop(context) {
    const vm = await lockVmOrThrow(context)
    return operationResponse(await admitVmStop(context.tx, { ...context.by, projectId: vm.project_id }, vm))
  },

  async adminVmDelete(context) {
    const vm = await lockVmOrThrow(context)
    return operationResponse(await admitVmDelete(context.tx, { ...context.by, projectId: vm.project_id }, vm))
  },
} satisfies Partial<Handlers>

async function lockVmOrThrow({ tx, params }: Context<'adminVmStop' | 'adminVmDelete'>): Promise<VmRow> {
  const known = await findAnyVm(tx, params.vm_id)
  return requireFound('VM', known && (await lockVm(tx, { projectId: known.project_id, id: known.id })))
}
