import { notFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import {
  findOrganization,
  insertOrganization,
  listOrganizations,
  listOrganizationsByIds,
  type OrganizationRow,
  suspendOrganization,
} from '../../store/identity/organizations.ts'
import { adminOrganizationView, organizationView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { requireCaller } from '../mount.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'
import { projectHandlers } from './projects.ts'
import { userHandlers } from './users.ts'

type OrganizationRoutes =
  | 'organizationList'
  | 'organizationGet'
  | 'adminOrganizationList'
  | 'adminOrganizationCreate'
  | 'adminOrganizationUpdate'

const ownHandlers = {
  async organizationList(context) {
    const caller = requireCaller(context)
    const ids =
      caller.kind === 'user'
        ? [...caller.memberships.keys()]
        : caller.kind === 'access_key'
          ? [caller.organizationId]
          : []
    return (await listOrganizationsByIds(context.tx, ids)).map(organizationView)
  },

  async organizationGet({ tx, organizationId }) {
    const row = await findOrganization(tx, organizationId)
    if (!row) throw notFound('organization')
    return organizationView(row)
  },

  async adminOrganizationList({ tx, query }) {
    const list = 'admin organizations'
    const limit = pageLimit(query)
    const rows = await listOrganizations(tx, readPageToken(list, query.page_token), limit + 1)
    return toPage(list, rows, limit, (row) => row.id, adminOrganizationView)
  },

  async adminOrganizationCreate({ tx, body, audit }) {
    const row = await insertOrganization(tx, uuid(), body.name)
    await audit({ type: 'organization.created', ...subject(row) })
    return organizationView(row)
  },

  async adminOrganizationUpdate({ tx, params, body, audit }) {
    const row = await suspendOrganization(tx, params.organization_id, body.suspended)
    if (!row) throw notFound('organization')
    await audit({
      type: body.suspended ? 'organization.suspended' : 'organization.restored',
      ...subject(row),
    })
    tx.signal('access')
    return adminOrganizationView(row)
  },
} satisfies Handlers<OrganizationRoutes>

export const organizationHandlers = { ...ownHandlers, ...projectHandlers, ...userHandlers }

const subject = (row: OrganizationRow) => ({
  resourceType: 'organization',
  resourceId: row.id,
  organizationId: row.id,
  data: { name: row.name },
})
