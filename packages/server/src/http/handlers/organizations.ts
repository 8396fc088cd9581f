import {
  createOrganization,
  setOrganizationSuspended,
  updateOrganization,
} from '../../accounts/organizations.ts'
import { changeOrganizationQuotas, readOrganizationQuotas } from '../../accounts/quotas.ts'
import { Failure, requireFound } from '../../domain/failure.ts'
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

export const organizationHandlers = {
  async organizationList(context) {
    const ids = organizationsOf(requireCaller(context))
    return (await listOrganizationsByIds(context.tx, ids)).map(organizationView)
  },

  organizationGet: async ({ tx, organizationId }) =>
    organizationView(requireFound('organization', await findOrganization(tx, organizationId))),

  async organizationUpdate(context) {
    const { services, tx, by, body } = context
    const caller = requireCaller(context)
    if (body.require_totp && !(caller.kind === 'user' && caller.hasSecondFactor))
      throw new Failure(
        'totp_enrolment_required',
        'Only an owner who is signed in with two-factor authentication can require it from all members.',
      )
    const reserved = services.config.oidc.map(({ organization }) => organization)
    return organizationView(await updateOrganization(tx, by, body, reserved))
  },

  adminOrganizationList: (context) =>
    pageById(context, (...page) => listOrganizations(context.tx, ...page), adminOrganizationView),

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
} satisfies Partial<Handlers>
