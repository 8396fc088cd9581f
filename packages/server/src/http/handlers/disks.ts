import { type Disk, diskTypes } from '@slipway/contract'
import { requireFound } from '../../domain/failure.ts'
import { protectionRefusal } from '../../operations/annotations.ts'
import { requireUncaptured } from '../../operations/capture/capture.ts'
import { annotate } from '../../operations/disk/annotate.ts'
import { admitDiskCreate } from '../../operations/disk/create.ts'
import { admitDiskDelete } from '../../operations/disk/delete.ts'
import { admitDiskResize } from '../../operations/disk/resize.ts'
import { findDiskView, listDiskViews, lockDisks } from '../../store/compute/disks.ts'
import type { Context, Handlers } from '../context.ts'
import { choiceList, commaList, idList, labelFilter, locationList } from '../filters.ts'
import { afterCursor, pageOfSorted } from '../pages.ts'
import { operationResponse } from './operations.ts'

const lockDiskOrThrow = async ({ tx, by, params }: Context<'diskUpdate' | 'diskDelete'>) =>
  requireFound('disk', (await lockDisks(tx, by.projectId, [params.disk_id]))[0])

export const diskHandlers = {
  diskCreate: async ({ tx, by, body }) => operationResponse(await admitDiskCreate(tx, by, body)),

  async diskList(context) {
    const { tx, project, query } = context
    const filter = {
      projectId: project.projectId,
      ids: idList('ids', query.ids),
      names: commaList(query.names),
      types: choiceList('types', query.types, diskTypes),
      locations: await locationList(tx, query.locations),
      attachedTo: idList('attached_to', query.attached_to),
      labels: labelFilter(query),
    }
    return pageOfSorted<Disk>(context, (cursor, limit, bytes) =>
      listDiskViews(tx, { ...filter, ...afterCursor(query.sort, cursor), limit, bytes }),
    )
  },

  diskGet: async ({ tx, project, params }) =>
    requireFound('disk', await findDiskView(tx, project.projectId, params.disk_id)),

  async diskUpdate(context) {
    const { tx, by, body } = context
    if (!('size' in body))
      return operationResponse(await annotate(tx, by, await lockDiskOrThrow(context), body))
    // Check the payment method before looking up the disk, like the routes that always require payment.
    context.requirePayment()
    return operationResponse(await admitDiskResize(tx, by, await lockDiskOrThrow(context), body))
  },

  async diskDelete(context) {
    const disk = await lockDiskOrThrow(context)
    const refusal = protectionRefusal('disk', disk)
    if (refusal) throw refusal
    await requireUncaptured(context.tx, [disk.id], `The disk ${disk.name}`)
    return operationResponse(await admitDiskDelete(context.tx, context.by, disk))
  },
} satisfies Partial<Handlers>
