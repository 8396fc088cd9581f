import { createInstanceTemplate, deleteInstanceTemplate } from '../../../accounts/instance-templates.ts'
import { requireFound } from '../../../domain/failure.ts'
import { findInstanceTemplate, listInstanceTemplates } from '../../../store/compute/instance-templates.ts'
import { instanceTemplateView } from '../../../views/instances.ts'
import { showsScripts } from '../../access.ts'
import { emptyResponse, type Handlers } from '../../context.ts'
import { commaList, labelFilter } from '../../filters.ts'
import { pageById } from '../../pages.ts'

export const instanceTemplateHandlers = {
  instanceTemplateCreate: async ({ tx, by, body }) =>
    instanceTemplateView(await createInstanceTemplate(tx, by, body), true),

  instanceTemplateList(context) {
    const { tx, project, query, request } = context
    const filter = {
      projectId: project.projectId,
      names: commaList(query.names),
      isLatest: query.latest ?? null,
      labels: labelFilter(query),
    }
    const mayRead = showsScripts(request.grant)
    return pageById(
      context,
      (beforeId, limit) => listInstanceTemplates(tx, { ...filter, beforeId, limit }),
      (row) => instanceTemplateView(row, mayRead),
    )
  },

  async instanceTemplateGet({ tx, project, params, request }) {
    const row = await findInstanceTemplate(tx, project.projectId, params.instance_template_id)
    return instanceTemplateView(requireFound('instance template', row), showsScripts(request.grant))
  },

  instanceTemplateDelete: ({ tx, by, params }) =>
    emptyResponse(deleteInstanceTemplate(tx, by, params.instance_template_id)),
} satisfies Partial<Handlers>
