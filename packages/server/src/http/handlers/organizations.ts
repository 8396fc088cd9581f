import { createOrganization, setOrganizationSuspended } from '../../accounts/organizations.ts'
import { notFound } from '../../domain/failure.ts'
import {
  findOrganization,
  listOrganizations,
  listOrganizationsByIds,
} from '../../store/identity/organizations.ts'
import { adminOrganizationView, organizationView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { requireCaller } from '../mount.ts'
import { pageById } from '../pages.ts'

type OrganizationRoutes =
  | 'organizationList'
  | 'organizationGet'
  | 'adminOrganizationList'
  | 'adminOrganizationCreate'
  | 'adminOrganizationUpdate'

export const organizationHandlers: Handlers<OrganizationRoutes> = {
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

  adminOrganizationList: (context) =>
    pageById(context, (before, limit) => listOrganizations(context.tx, before, limit), adminOrganizationView),

  adminOrganizationCreate: async ({ tx, by, body }) =>
    organizationView(await createOrganization(tx, by, body.name)),

  adminOrganizationUpdate: async ({ tx, by, params, body }) =>
    adminOrganizationView(await setOrganizationSuspended(tx, by, params.organization_id, body.suspended)),
}
