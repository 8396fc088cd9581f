import { createOrganization, setOrganizationSuspended } from '../../accounts/organizations.ts'
import { changeOrganizationQuotas, readOrganizationQuotas } from '../../accounts/quotas.ts'
import { notFound } from '../../domain/failure.ts'
import {
  findOrganization,
  listOrganizations,
  listOrganizationsByIds,
} from '../../store/identity/organizations.ts'
import { organizationQuotaViews } from '../../views/catalogue.ts'
import { adminOrganizationView, organizationView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { requireCaller } from '../mount.ts'
import { pageById } from '../pages.ts'

type OrganizationRoutes =
  | 'organizationList'
  | 'organizationGet'
  | 'organizationQuotaList'
  | 'adminOrganizationList'
  | 'adminOrganizationCreate'
  | 'adminOrganizationUpdate'
  | 'adminOrganizationQuotaList'
  | 'adminOrganizationQuotaSet'

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

  adminOrganizationCreate: async ({ services, tx, by, body }) =>
    organizationView(await createOrganization(tx, by, body.name, services.config.quotas)),

  adminOrganizationUpdate: async ({ tx, by, params, body }) =>
    adminOrganizationView(await setOrganizationSuspended(tx, by, params.organization_id, body.suspended)),

  organizationQuotaList: async ({ tx, organizationId }) => ({
    items: organizationQuotaViews(await readOrganizationQuotas(tx, organizationId)),
  }),

  adminOrganizationQuotaList: async ({ tx, params }) => ({
    items: organizationQuotaViews(await readOrganizationQuotas(tx, params.organization_id)),
  }),

  async adminOrganizationQuotaSet({ tx, by, params, body }) {
    await changeOrganizationQuotas(tx, by, params.organization_id, body.items)
    return { items: organizationQuotaViews(await readOrganizationQuotas(tx, params.organization_id)) }
  },
}
