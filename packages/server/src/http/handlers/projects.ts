import { changeProject, createProject, deleteProject } from '../../accounts/projects.ts'
import { notFound } from '../../domain/failure.ts'
import { findProject, listAllProjects, listProjects } from '../../store/identity/projects.ts'
import { adminProjectView, projectView } from '../../views/identity.ts'
import { requireRole, standingIn } from '../access.ts'
import { type Handlers, organizationsOf, requireCaller } from '../context.ts'
import { labelFilter } from '../filters.ts'
import { pageById } from '../pages.ts'

type ProjectRoutes =
  | 'projectList'
  | 'projectCreate'
  | 'projectGet'
  | 'projectUpdate'
  | 'projectDelete'
  | 'adminProjectList'

export const projectHandlers: Handlers<ProjectRoutes> = {
  async projectList(context) {
    const caller = requireCaller(context)
    if (caller.kind === 'access_key' && caller.isSuspended)
      requireRole({ access: 'visible' }, { role: undefined, isSuspended: true })
    const ownIds = caller.kind === 'access_key' && caller.projectId ? [caller.projectId] : []
    const organizationIds = ownIds.length > 0 ? [] : organizationsOf(caller)
    return (await listProjects(context.tx, organizationIds, ownIds, labelFilter(context.query))).map(
      projectView,
    )
  },

  /** The organization is in the body, so that the mount could not look at the role. */
  async projectCreate(context) {
    const { tx, by, body } = context
    const caller = requireCaller(context)
    const { name, labels, organization_id: organizationId } = body
    const standing = standingIn(caller, organizationId)
    if (!standing) throw notFound('organization')
    requireRole({ access: 'admin' }, standing)
    return projectView(await createProject(tx, by, { organizationId, name, ...(labels && { labels }) }))
  },

  adminProjectList: (context) =>
    pageById(context, (before, limit) => listAllProjects(context.tx, before, limit), adminProjectView),

  async projectGet({ tx, params }) {
    const row = await findProject(tx, params.project_id)
    if (!row) throw notFound('project')
    return projectView(row)
  },

  projectUpdate: async ({ tx, by, body }) => projectView(await changeProject(tx, by, body)),

  async projectDelete({ tx, by }) {
    await deleteProject(tx, by)
    return {}
  },
}
