import { createProject, nameTaken } from '../../accounts/project-create.ts'
import { Failure, notFound } from '../../domain/failure.ts'
import { revokeAccessKeysOfProject } from '../../store/identity/access-keys.ts'
import {
  closeProject,
  deleteProject,
  findProject,
  listAllProjects,
  listProjects,
  type ProjectRow,
  renameProject,
} from '../../store/identity/projects.ts'
import { projectView } from '../../views/identity.ts'
import { requireRole } from '../access.ts'
import type { Handlers } from '../context.ts'
import { requireCaller } from '../mount.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

type ProjectRoutes =
  | 'projectList'
  | 'projectCreate'
  | 'projectGet'
  | 'projectUpdate'
  | 'projectDelete'
  | 'adminProjectList'

export const projectHandlers = {
  async projectList(context) {
    const caller = requireCaller(context)
    const organizationIds = caller.kind === 'user' ? [...caller.memberships.keys()] : []
    const ownIds = caller.kind === 'access_key' ? [caller.projectId] : []
    return (await listProjects(context.tx, organizationIds, ownIds)).map(projectView)
  },

  async projectCreate(context) {
    const { services, tx, body, audit } = context
    const caller = requireCaller(context)
    const role = caller.kind === 'user' ? caller.memberships.get(body.organization_id) : undefined
    const isOwnKey = caller.kind === 'access_key' && caller.organizationId === body.organization_id
    if (!role && !isOwnKey) throw notFound('organization')
    requireRole({ access: 'admin' }, role)
    const row = await createProject(tx, {
      organizationId: body.organization_id,
      name: body.name,
      quotas: services.config.quotas,
    })
    await audit({ type: 'project.created', ...subject(row) })
    return projectView(row)
  },

  async adminProjectList({ tx, query }) {
    const list = 'admin projects'
    const limit = pageLimit(query)
    const rows = await listAllProjects(tx, readPageToken(list, query.page_token), limit + 1)
    return toPage(
      list,
      rows,
      limit,
      (row) => row.id,
      (row) => ({ ...projectView(row), organization_name: row.organization_name }),
    )
  },

  async projectGet({ tx, params }) {
    const row = await findProject(tx, params.project_id)
    if (!row) throw notFound('project')
    return projectView(row)
  },

  async projectUpdate({ tx, params, body, audit }) {
    const row = await renameProject(tx, params.project_id, body.name).catch((error) => {
      throw nameTaken(error)
    })
    if (!row) throw notFound('project')
    await audit({ type: 'project.updated', ...subject(row) })
    return projectView(row)
  },

  async projectDelete({ tx, params, audit }) {
    const row = await findProject(tx, params.project_id)
    if (!row) throw notFound('project')
    const contents = await closeProject(tx, row.id)
    const left = Object.entries(contents).filter(([, count]) => count > 0)
    if (left.length > 0)
      throw new Failure(
        'conflict',
        `The project is not empty: delete or await ${left.map(([what, count]) => `${what} (${count})`).join(', ')} first.`,
      )
    await revokeAccessKeysOfProject(tx, row.id)
    if (!(await deleteProject(tx, row.id))) throw notFound('project')
    await audit({ type: 'project.deleted', ...subject(row) })
    tx.signal('access')
    return {}
  },
} satisfies Handlers<ProjectRoutes>

const subject = (row: ProjectRow) => ({
  resourceType: 'project',
  resourceId: row.id,
  projectId: row.id,
  organizationId: row.organization_id,
  data: projectView(row),
})
