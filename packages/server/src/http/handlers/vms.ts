import { type Vm, type VmUpdate, type vmRoutes, vmStates, vmTypeNames } from '@slipway/contract'
import { notFound } from '../../domain/failure.ts'
import { protectionOf } from '../../operations/annotations.ts'
import { requireDistinct } from '../../operations/disk/attachments.ts'
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
import { started } from './operations.ts'

async function locked({
  tx,
  by,
  params,
}: Context<'vmUpdate' | 'vmDelete' | 'vmAttachDisks' | 'vmDetachDisks'>): Promise<VmRow> {
  const vm = await lockVm(tx, { projectId: by.projectId, id: params.vm_id })
  if (!vm) throw notFound('VM')
  return vm
}

function update(context: Context<'vmUpdate'>, vm: VmRow, body: VmUpdate): Promise<BegunOperation> {
  const { tx, by } = context
  if ('type' in body) return admitVmRetype(tx, by, vm, body.type)
  if ('ttl_seconds' in body) return admitVmTtl(tx, by, vm, body)
  if (!('action' in body)) return annotate(tx, by, vm, body)
  switch (body.action) {
    case 'START':
      return admitVmStart(tx, by, vm)
    case 'STOP':
      return admitVmStop(tx, by, vm)
    case 'RESET':
      return admitVmReset(tx, by, vm)
  }
}

/** Consoles and scripts look at the same list again and again: those who wait for the same share a page, and its bytes. */
const vmPage = sharedRead(
  (
    db,
    {
      filter,
      ...list
    }: Pick<Context<'vmList'>, 'routeId' | 'params' | 'query'> & { filter: Omit<VmFilter, keyof SortedPage> },
  ) =>
    pageOfSorted<Vm>(list, (cursor, limit) =>
      listVmViews(db, { ...filter, ...afterCursor(list.query.sort, cursor), limit }),
    ),
)

type VmRouteId = Exclude<keyof typeof vmRoutes, 'vmOperationList' | 'vmOperationGet'>

export const vmHandlers: Handlers<VmRouteId> = {
  vmCreate: async ({ services, tx, by, body }) =>
    started(await admitVmCreate(tx, services.catalogueMemory, by, body)),

  async vmList({ tx, project, routeId, params, query }) {
    const filter = {
      projectId: project.projectId,
      ids: idList('ids', query.ids),
      names: commaList(query.names),
      types: choiceList('types', query.types, vmTypeNames),
      locations: await locationList(tx, query.locations),
      states: choiceList('states', query.states, vmStates),
      labels: labelFilter(query),
    }
    return vmPage(tx, { routeId, params, query, filter })
  },

  async vmGet({ tx, project, params }) {
    const vm = await findVmView(tx, project.projectId, params.vm_id)
    if (!vm) throw notFound('VM')
    return vm
  },

  async vmUpdate(context) {
    // What costs money is refused before anything is looked for.
    if ('action' in context.body && context.body.action === 'START') context.requirePayment()
    return started(await update(context, await locked(context), context.body))
  },

  async vmDelete(context) {
    const vm = await locked(context)
    const refusal = protectionOf('VM', vm)
    if (refusal) throw refusal
    return started(await admitVmDelete(context.tx, context.by, vm))
  },

  async vmAttachDisks(context) {
    const { tx, by, body } = context
    requireDistinct('attach_disks', body.attach_disks)
    return started(await admitVmAttachDisks(tx, by, await locked(context), body))
  },

  async vmDetachDisks(context) {
    const { tx, by, body } = context
    return started(await admitVmDetachDisks(tx, by, await locked(context), body))
  },

  async vmSerialLog({ tx, project, params, query, services }) {
    const vm = await findVm(tx, project.projectId, params.vm_id)
    if (!vm) throw notFound('VM')
    const { content, nextOffset } = await readSerialLog(services, vm, query.offset)
    return { content, next_offset: nextOffset }
  },
}
