import { changeProject, createProject, deleteProject } from '../../accounts/projects.ts'
import { requireFound } from '../../domain/failure.ts'
import { findProject, listAllProjects, listProjects } from '../../store/identity/projects.ts'
import { adminProjectView, projectView } from '../../views/identity.ts'
import { findRole, requireRole } from '../access.ts'
import { emptyResponse, type Handlers, organizationsOf, requireCaller } from '../context.ts'
import { labelFilter } from '../filters.ts'
import { pageById } from '../pages.ts'

export const projectHandlers = {
  async projectList(context) {
    const caller = requireCaller(context)
    if (caller.kind === 'access_key' && caller.isSuspended)
      requireRole({ access: 'visible' }, { role: undefined, isSuspended: true })
    const ownIds = caller.kind === 'access_key' && caller.projectId ? [caller.projectId] : []
    const organizationIds = ownIds.length > 0 ? [] : organizationsOf(caller)
    const rows = await listProjects(context.tx, organizationIds, ownIds, labelFilter(context.query))
    return rows.map(projectView)
  },

  /** Checks the role here, because the organization is in the body, which is read after the usual check. */
  async projectCreate(context) {
    const { tx, by, body } = context
    const { name, labels, organization_id: organizationId } = body
    const access = requireFound('organization', findRole(requireCaller(context), organizationId))
    requireRole({ access: 'admin' }, access)
    return projectView(await createProject(tx, by, { organizationId, name, ...(labels && { labels }) }))
  },

  adminProjectList: (context) =>
    pageById(context, (...page) => listAllProjects(context.tx, ...page), adminProjectView),

  projectGet: async ({ tx, params }) =>
    projectView(requireFound('project', await findProject(tx, params.project_id))),

  projectUpdate: async ({ tx, by, body }) => projectView(await changeProject(tx, by, body)),

  projectDelete: ({ tx, by }) => emptyResponse(deleteProject(tx, by)),
} satisfies Partial<Handlers>
