import { type Vm, type VmUpdate, vmStates, vmTypeNames } from '@slipway/contract'
import { requireFound } from '../../domain/failure.ts'
import { protectionRefusal } from '../../operations/annotations.ts'
import { reserveVm, unreserveVm } from '../../operations/capacity/reserved-vms.ts'
import { requireDistinct } from '../../operations/disk/attachments.ts'
import { changeOnGpuFault } from '../../operations/health/policy.ts'
import { admitVmReplace } from '../../operations/health/replace.ts'
import { changeIdlePolicy } from '../../operations/idle-policy.ts'
import { annotate } from '../../operations/vm/annotate.ts'
import { admitVmAttachDisks } from '../../operations/vm/attach-disks.ts'
import { admitVmCreate } from '../../operations/vm/create.ts'
import { admitVmDelete } from '../../operations/vm/delete.ts'
import { admitVmDetachDisks } from '../../operations/vm/detach-disks.ts'
import { admitVmReset } from '../../operations/vm/reset.ts'
import { readSerialLog } from '../../operations/vm/serial-log.ts'
import { admitVmStart } from '../../operations/vm/start.ts'
import { admitVmStop } from '../../operations/vm/stop.ts'
import { admitVmRetype, admitVmTtl } from '../../operations/vm/update.ts'
import { sharedRead } from '../../postgres/keyed.ts'
import type { SortedPage } from '../../postgres/sorted.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { findVmView, listVmViews, type VmFilter } from '../../store/compute/vm-view.ts'
import { findVm, lockVm, type VmRow } from '../../store/compute/vms.ts'
import type { Context, Handlers } from '../context.ts'
import { choiceList, commaList, idList, labelFilter, locationList } from '../filters.ts'
import { afterCursor, pageOfSorted } from '../pages.ts'
import { operationResponse } from './operations.ts'

type ChangeRoutes = 'vmUpdate' | 'vmDelete' | 'vmAttachDisks' | 'vmDetachDisks'

const lockVmOrThrow = async ({ tx, by, params }: Context<ChangeRoutes>): Promise<VmRow> =>
  requireFound('VM', await lockVm(tx, { projectId: by.projectId, id: params.vm_id }))

function update(context: Context<'vmUpdate'>, vm: VmRow, body: VmUpdate): Promise<BegunOperation> {
  const { tx, by } = context
  if ('type' in body) return admitVmRetype(tx, by, vm, body.type)
  if ('ttl_seconds' in body) return admitVmTtl(tx, by, vm, body)
  if ('idle_policy' in body)
    return changeIdlePolicy(tx, context.services.catalogueCache, by, vm, body.idle_policy)
  if ('on_gpu_fault' in body) return changeOnGpuFault(tx, by, vm, body.on_gpu_fault)
  if (!('action' in body)) return annotate(tx, by, vm, body)
  if (body.action === 'RESERVE') return reserveVm(tx, by, vm, body.reservation_id)
  if (body.action === 'UNRESERVE') return unreserveVm(tx, by, vm)
  switch (body.action) {
    case 'START':
      return admitVmStart(tx, by, vm)
    case 'STOP':
      return admitVmStop(tx, by, vm)
    case 'RESET':
      return admitVmReset(tx, by, vm)
    case 'REPLACE':
      return admitVmReplace(tx, by, vm)
  }
}

/**
 * Requests that wait for the same page share one query and one JSON text, because consoles and scripts poll the
 * same list.
 */
const vmPage = sharedRead(
  (
    db,
    {
      filter,
      ...list
    }: Pick<Context<'vmList'>, 'routeId' | 'params' | 'query' | 'pageBytes'> & {
      filter: Omit<VmFilter, keyof SortedPage>
    },
  ) =>
    pageOfSorted<Vm>(list, (cursor, limit, bytes) =>
      listVmViews(db, { ...filter, ...afterCursor(list.query.sort, cursor), limit, bytes }),
    ),
)

export const vmHandlers = {
  vmCreate: async ({ services, tx, by, body }) =>
    operationResponse(await admitVmCreate(tx, services.catalogueCache, by, body)),

  async vmList({ tx, project, routeId, params, query, pageBytes }) {
    const filter = {
      projectId: project.projectId,
      ids: idList('ids', query.ids),
      names: commaList(query.names),
      types: choiceList('types', query.types, vmTypeNames),
      locations: await locationList(tx, query.locations),
      states: choiceList('states', query.states, vmStates),
      labels: labelFilter(query),
    }
    return vmPage(tx, { routeId, params, query, pageBytes, filter })
  },

  vmGet: async ({ tx, project, params }) =>
    requireFound('VM', await findVmView(tx, project.projectId, params.vm_id)),

  async vmUpdate(context) {
    // Check the payment method before looking up the VM, like the routes that always require payment.
    if ('action' in context.body && context.body.action === 'START') context.requirePayment()
    return operationResponse(await update(context, await lockVmOrThrow(context), context.body))
  },

  async vmDelete(context) {
    const vm = await lockVmOrThrow(context)
    const refusal = protectionRefusal('VM', vm)
    if (refusal) throw refusal
    return operationResponse(await admitVmDelete(context.tx, context.by, vm))
  },

  async vmAttachDisks(context) {
    const { tx, by, body } = context
    requireDistinct('attach_disks', body.attach_disks)
    return operationResponse(await admitVmAttachDisks(tx, by, await lockVmOrThrow(context), body))
  },

  async vmDetachDisks(context) {
    const { tx, by, body } = context
    return operationResponse(await admitVmDetachDisks(tx, by, await lockVmOrThrow(context), body))
  },

  async vmSerialLog({ tx, project, params, query, services }) {
    const vm = requireFound('VM', await findVm(tx, project.projectId, params.vm_id))
    const { content, nextOffset } = await readSerialLog(services, vm, query.offset)
    return { content, next_offset: nextOffset }
  },
} satisfies Partial<Handlers>
