import { requireFound } from '../../../domain/failure.ts'
import { protectionRefusal } from '../../../operations/annotations.ts'
import { annotate } from '../../../operations/capture/annotate.ts'
import { admitCustomImageCreate } from '../../../operations/capture/create.ts'
import { admitCaptureDelete, requireUnused } from '../../../operations/capture/delete.ts'
import { findCapture, listCaptures, lockCapture } from '../../../store/captures/captures.ts'
import { customImageView } from '../../../views/captures.ts'
import type { Context, Handlers } from '../../context.ts'
import { commaList, labelFilter } from '../../filters.ts'
import { pageById } from '../../pages.ts'
import { operationResponse } from '../operations.ts'

const noun = 'custom image'

const lockImageOrThrow = async ({ tx, by, params }: Context<'customImageUpdate' | 'customImageDelete'>) =>
  requireFound(noun, await lockCapture(tx, by.projectId, 'image', params.custom_image_id))

export const customImageHandlers = {
  customImageCreate: async ({ tx, by, body }) =>
    operationResponse(await admitCustomImageCreate(tx, by, body)),

  customImageList(context) {
    const { tx, project, query } = context
    const filter = {
      projectId: project.projectId,
      kind: 'image' as const,
      names: commaList(query.names),
      namePrefix: query.name_prefix ?? null,
      sourceIds: null,
      labels: labelFilter(query),
    }
    return pageById(
      context,
      (beforeId, limit) => listCaptures(tx, { ...filter, beforeId, limit }),
      customImageView,
    )
  },

  async customImageGet({ tx, project, params }) {
    const found = await findCapture(tx, project.projectId, params.custom_image_id)
    return customImageView(requireFound(noun, found?.kind === 'image' ? found : undefined))
  },

  customImageUpdate: async (context) =>
    customImageView(await annotate(context.tx, context.by, await lockImageOrThrow(context), context.body)),

  async customImageDelete(context) {
    const image = await lockImageOrThrow(context)
    const refusal = protectionRefusal(noun, image)
    if (refusal) throw refusal
    await requireUnused(context.tx, image)
    return operationResponse(await admitCaptureDelete(context.tx, context.by, image))
  },
} satisfies Partial<Handlers>
