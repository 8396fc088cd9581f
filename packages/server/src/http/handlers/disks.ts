import type { diskRoutes } from '@slipway/contract'
import { notFound } from '../../domain/failure.ts'
import { admitDiskCreate } from '../../operations/disk/create.ts'
import { admitDiskDelete } from '../../operations/disk/delete.ts'
import { admitDiskResize } from '../../operations/disk/resize.ts'
import { type DiskRow, diskView, findDisk, listDisks, lockDisks } from '../../store/compute/disks.ts'
import { operationView } from '../../store/compute/operations.ts'
import type { Context, Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'
import { commaList, requesterOf } from '../requester.ts'
import { idList } from './vms.ts'

async function locked(context: Context<'diskUpdate' | 'diskDelete'>): Promise<DiskRow> {
  const [disk] = await lockDisks(context.tx, context.project.projectId, [context.params.disk_id])
  if (!disk) throw notFound('disk')
  return disk
}

type DiskRouteId = Exclude<keyof typeof diskRoutes, 'diskOperationList' | 'diskOperationGet'>

export const diskHandlers: Handlers<DiskRouteId> = {
  async diskCreate(context) {
    const operation = await admitDiskCreate(context.tx, requesterOf(context), context.body)
    return { operation: operationView(operation) }
  },

  async diskList({ tx, project, query }) {
    const key = `disks ${project.projectId}`
    const limit = pageLimit(query)
    const rows = await listDisks(tx, {
      projectId: project.projectId,
      beforeId: readPageToken(key, query.page_token),
      ids: idList('ids', query.ids),
      names: commaList(query.names),
      types: commaList(query.types),
      locations: commaList(query.locations),
      attachedTo: idList('attached_to', query.attached_to),
      limit: limit + 1,
    })
    return toPage(key, rows, limit, (row) => row.id, diskView)
  },

  async diskGet({ tx, project, params }) {
    const disk = await findDisk(tx, project.projectId, params.disk_id)
    if (!disk) throw notFound('disk')
    return diskView(disk)
  },

  async diskUpdate(context) {
    const operation = await admitDiskResize(
      context.tx,
      requesterOf(context),
      await locked(context),
      context.body,
    )
    return { operation: operationView(operation) }
  },

  async diskDelete(context) {
    const operation = await admitDiskDelete(context.tx, requesterOf(context), await locked(context))
    return { operation: operationView(operation) }
  },
}
