import {
  createOrganization,
  setOrganizationSuspended,
  updateOrganization,
} from '../../accounts/organizations.ts'
import { changeOrganizationQuotas, readOrganizationQuotas } from '../../accounts/quotas.ts'
import { Failure, notFound } from '../../domain/failure.ts'
import {
  findOrganization,
  findOrganizationAccount,
  listOrganizations,
  listOrganizationsByIds,
} from '../../store/identity/organizations.ts'
import { organizationQuotaViews } from '../../views/catalogue.ts'
import { adminOrganizationView, organizationView } from '../../views/identity.ts'
import { type Handlers, organizationsOf, requireCaller } from '../context.ts'
import { pageById } from '../pages.ts'

type OrganizationRoutes =
  | 'organizationList'
  | 'organizationGet'
  | 'organizationUpdate'
  | 'organizationQuotaList'
  | 'adminOrganizationList'
  | 'adminOrganizationCreate'
  | 'adminOrganizationUpdate'
  | 'adminOrganizationQuotaList'
  | 'adminOrganizationQuotaSet'

export const organizationHandlers: Handlers<OrganizationRoutes> = {
  async organizationList(context) {
    const ids = organizationsOf(requireCaller(context))
    return (await listOrganizationsByIds(context.tx, ids)).map(organizationView)
  },

  async organizationGet({ tx, organizationId }) {
    const row = await findOrganization(tx, organizationId)
    if (!row) throw notFound('organization')
    return organizationView(row)
  },

  async organizationUpdate(context) {
    const { services, tx, by, body } = context
    const caller = requireCaller(context)
    if (body.require_totp && !(caller.kind === 'user' && caller.hasSecondFactor))
      throw new Failure(
        'totp_enrolment_required',
        'Only an owner who is signed in with a second factor can demand one of others.',
      )
    const reserved = services.config.oidc.map(({ organization }) => organization)
    return organizationView(await updateOrganization(tx, by, body, reserved))
  },

  adminOrganizationList: (context) =>
    pageById(context, (before, limit) => listOrganizations(context.tx, before, limit), adminOrganizationView),

  adminOrganizationCreate: async ({ services, tx, by, body }) =>
    organizationView(await createOrganization(tx, by, body.name, services.config.quotas)),

  async adminOrganizationUpdate({ tx, by, params, body }) {
    await setOrganizationSuspended(tx, by, params.organization_id, body)
    return adminOrganizationView((await findOrganizationAccount(tx, params.organization_id))!)
  },

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
