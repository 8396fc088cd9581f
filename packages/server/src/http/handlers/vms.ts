import type { VmUpdate, vmRoutes } from '@slipway/contract'
import { Failure, notFound } from '../../domain/failure.ts'
import { isUuid } from '../../domain/ids.ts'
import { EngineError } from '../../engines/engine.ts'
import { engineAt, refOf } from '../../operations/engine-work.ts'
import { admitVmAttachDisks } from '../../operations/vm/attach-disks.ts'
import { admitVmCreate } from '../../operations/vm/create.ts'
import { admitVmDelete } from '../../operations/vm/delete.ts'
import { admitVmDetachDisks } from '../../operations/vm/detach-disks.ts'
import { admitVmReset } from '../../operations/vm/reset.ts'
import { admitVmStart } from '../../operations/vm/start.ts'
import { admitVmStop } from '../../operations/vm/stop.ts'
import { admitVmRetype, admitVmTtl } from '../../operations/vm/update.ts'
import { type OperationRow, operationView } from '../../store/compute/operations.ts'
import { findVmView, listVmViews, vmView } from '../../store/compute/vm-view.ts'
import { findVm, lockVm, type VmRow } from '../../store/compute/vms.ts'
import type { Context, Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'
import { commaList, requesterOf } from '../requester.ts'

const serialLogMs = 10_000

const started = (operation: OperationRow) => ({ operation: operationView(operation) })

async function locked(
  context: Context<'vmUpdate' | 'vmDelete' | 'vmAttachDisks' | 'vmDetachDisks'>,
): Promise<VmRow> {
  const vm = await lockVm(context.tx, context.project.projectId, context.params.vm_id)
  if (!vm) throw notFound('VM')
  return vm
}

function update(context: Context<'vmUpdate'>, vm: VmRow, body: VmUpdate): Promise<OperationRow> {
  const by = requesterOf(context)
  if ('type' in body) return admitVmRetype(context.tx, by, vm, body.type)
  if ('ttl_seconds' in body) return admitVmTtl(context.tx, by, vm, body)
  switch (body.action) {
    case 'START':
      context.requirePayment()
      return admitVmStart(context.tx, by, vm)
    case 'STOP':
      return admitVmStop(context.tx, by, vm)
    case 'RESET':
      return admitVmReset(context.tx, by, vm)
  }
}

type VmRouteId = Exclude<keyof typeof vmRoutes, 'vmOperationList' | 'vmOperationGet'>

export const vmHandlers: Handlers<VmRouteId> = {
  async vmCreate(context) {
    return started(await admitVmCreate(context.tx, requesterOf(context), context.body))
  },

  async vmList({ tx, project, query }) {
    const key = `vms ${project.projectId}`
    const limit = pageLimit(query)
    const rows = await listVmViews(tx, {
      projectId: project.projectId,
      beforeId: readPageToken(key, query.page_token),
      ids: idList('ids', query.ids),
      names: commaList(query.names),
      types: commaList(query.types),
      locations: commaList(query.locations),
      states: commaList(query.states),
      limit: limit + 1,
    })
    return toPage(key, rows, limit, (row) => row.id, vmView)
  },

  async vmGet({ tx, project, params }) {
    const vm = await findVmView(tx, project.projectId, params.vm_id)
    if (!vm) throw notFound('VM')
    return vmView(vm)
  },

  async vmUpdate(context) {
    return started(await update(context, await locked(context), context.body))
  },

  async vmDelete(context) {
    return started(await admitVmDelete(context.tx, requesterOf(context), await locked(context)))
  },

  async vmAttachDisks(context) {
    return started(
      await admitVmAttachDisks(context.tx, requesterOf(context), await locked(context), context.body),
    )
  },

  async vmDetachDisks(context) {
    return started(
      await admitVmDetachDisks(context.tx, requesterOf(context), await locked(context), context.body),
    )
  },

  async vmSerialLog({ tx, project, params, query, services }) {
    const vm = await findVm(tx, project.projectId, params.vm_id)
    if (!vm) throw notFound('VM')
    try {
      const signal = AbortSignal.timeout(serialLogMs)
      const log = await engineAt(services, vm.location).serialLog(refOf(vm), query.offset, signal)
      return { content: log.content, next_offset: log.nextOffset }
    } catch (cause) {
      if (!(cause instanceof EngineError)) throw cause
      // Not defined yet, or its host is away: nothing to read is not an error of the caller.
      if (cause.kind === 'missing') return { content: '', next_offset: query.offset ?? 0 }
      throw new Failure('unavailable', 'The serial log cannot be read now: try again shortly.', { cause })
    }
  },
}

export function idList(field: string, text: string | undefined): string[] | null {
  const ids = commaList(text)
  if (ids && !ids.every(isUuid))
    throw new Failure('invalid_argument', `${field} must be UUIDs, comma-separated.`, {
      details: [{ field, message: 'must be UUIDs, comma-separated' }],
    })
  return ids
}
