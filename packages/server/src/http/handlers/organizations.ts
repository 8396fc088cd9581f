import type { Organization } from '@slipway/contract'
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
import { time } from '../../store/time.ts'
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
    return (await listOrganizationsByIds(context.tx, ids)).map(viewOrganization)
  },

  async organizationGet({ tx, organizationId }) {
    const row = await findOrganization(tx, organizationId)
    if (!row) throw notFound('organization')
    return viewOrganization(row)
  },

  async adminOrganizationList({ tx, query }) {
    const list = 'admin organizations'
    const limit = pageLimit(query)
    const rows = await listOrganizations(tx, readPageToken(list, query.page_token), limit + 1)
    return toPage(list, rows, limit, (row) => row.id, viewAdminOrganization)
  },

  async adminOrganizationCreate({ tx, body, audit }) {
    const row = await insertOrganization(tx, uuid(), body.name)
    await audit({ type: 'organization.created', ...subject(row) })
    return viewOrganization(row)
  },

  async adminOrganizationUpdate({ services, tx, params, body, audit }) {
    const row = await suspendOrganization(tx, params.organization_id, body.suspended)
    if (!row) throw notFound('organization')
    await audit({
      type: body.suspended ? 'organization.suspended' : 'organization.restored',
      ...subject(row),
    })
    tx.signal('access')
    return viewAdminOrganization(row)
  },
} satisfies Handlers<OrganizationRoutes>

export const organizationHandlers = { ...ownHandlers, ...projectHandlers, ...userHandlers }

const viewOrganization = (row: OrganizationRow): Organization => ({
  id: row.id,
  name: row.name,
  payment_customer_id: row.payment_customer_id,
})

const viewAdminOrganization = (row: OrganizationRow) => ({
  ...viewOrganization(row),
  suspended: row.suspended_at !== null,
  created_at: time(row.created_at),
})

const subject = (row: OrganizationRow) => ({
  resourceType: 'organization',
  resourceId: row.id,
  organizationId: row.id,
  data: { name: row.name },
})
