import { requireFound } from '../../../domain/failure.ts'
import { protectionRefusal } from '../../../operations/annotations.ts'
import { annotate } from '../../../operations/capture/annotate.ts'
import { admitSnapshotCreate } from '../../../operations/capture/create.ts'
import { admitCaptureDelete, requireUnused } from '../../../operations/capture/delete.ts'
import { findCapture, listCaptures, lockCapture } from '../../../store/captures/captures.ts'
import { snapshotView } from '../../../views/captures.ts'
import type { Context, Handlers } from '../../context.ts'
import { commaList, idList, labelFilter } from '../../filters.ts'
import { pageById } from '../../pages.ts'
import { operationResponse } from '../operations.ts'

const lockSnapshotOrThrow = async ({ tx, by, params }: Context<'snapshotUpdate' | 'snapshotDelete'>) =>
  requireFound('snapshot', await lockCapture(tx, by.projectId, 'snapshot', params.snapshot_id))

export const snapshotHandlers = {
  snapshotCreate: async ({ tx, by, body }) => operationResponse(await admitSnapshotCreate(tx, by, body)),

  snapshotList(context) {
    const { tx, project, query } = context
    const filter = {
      projectId: project.projectId,
      kind: 'snapshot' as const,
      names: commaList(query.names),
      namePrefix: null,
      sourceIds: idList('created_from', query.created_from),
      labels: labelFilter(query),
    }
    return pageById(
      context,
      (beforeId, limit) => listCaptures(tx, { ...filter, beforeId, limit }),
      snapshotView,
    )
  },

  async snapshotGet({ tx, project, params }) {
    const found = await findCapture(tx, project.projectId, params.snapshot_id)
    return snapshotView(requireFound('snapshot', found?.kind === 'snapshot' ? found : undefined))
  },

  snapshotUpdate: async (context) =>
    snapshotView(await annotate(context.tx, context.by, await lockSnapshotOrThrow(context), context.body)),

  async snapshotDelete(context) {
    const snapshot = await lockSnapshotOrThrow(context)
    const refusal = protectionRefusal('snapshot', snapshot)
    if (refusal) throw refusal
    await requireUnused(context.tx, snapshot)
    return operationResponse(await admitCaptureDelete(context.tx, context.by, snapshot))
  },
} satisfies Partial<Handlers>
