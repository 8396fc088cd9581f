import { isIPv4 } from 'node:net'
import { setAlertRecipients } from '../../accounts/organizations.ts'
import { requireFound } from '../../domain/failure.ts'
import { isUuid } from '../../domain/ids.ts'
import { listProjectIds } from '../../store/billing/usage-days.ts'
import { listAlerts, listOperatorAlerts } from '../../store/finding/alerts.ts'
import { listProjectSummaries } from '../../store/finding/project-summaries.ts'
import { searchEverywhere, searchOrganization } from '../../store/finding/search.ts'
import { listSuggestions } from '../../store/finding/suggestions.ts'
import { findOrganization } from '../../store/identity/organizations.ts'
import { alertView } from '../../views/alerts.ts'
import { searchResultView } from '../../views/search.ts'
import { suggestionView } from '../../views/suggestions.ts'
import type { Handlers } from '../context.ts'

const maxAlerts = 500
const maxSuggestions = 100

export const alertAndSearchHandlers = {
  alertList: async ({ tx, project }) => ({
    items: (await listAlerts(tx, project.organizationId, [project.projectId], maxAlerts)).map(alertView),
  }),

  suggestionList: async ({ tx, project }) => ({
    items: (await listSuggestions(tx, project.projectId, maxSuggestions)).map(suggestionView),
  }),

  async organizationAlertList({ tx, organizationId }) {
    const projectIds = await listProjectIds(tx, organizationId)
    return { items: (await listAlerts(tx, organizationId, projectIds, maxAlerts)).map(alertView) }
  },

  alertRecipientsGet: async ({ tx, organizationId }) => ({
    emails: requireFound('organization', await findOrganization(tx, organizationId)).alert_emails,
  }),

  alertRecipientsSet: async ({ tx, by, body }) => ({ emails: await setAlertRecipients(tx, by, body.emails) }),

  adminAlertList: async ({ tx }) => ({ items: (await listOperatorAlerts(tx, maxAlerts)).map(alertView) }),

  organizationProjectList: async ({ tx, organizationId }) => ({
    items: (await listProjectSummaries(tx, organizationId)).map((row) => ({
      ...row,
      usd_per_hour: Number(row.usd_per_hour),
      month_to_date_usd: Number(row.month_to_date_usd),
    })),
  }),

  organizationSearch: async ({ tx, organizationId, query }) => ({
    items: (await searchOrganization(tx, organizationId, query.q.toLowerCase())).map(searchResultView),
  }),

  async adminSearch({ tx, query }) {
    const q = query.q.toLowerCase()
    const wanted = { q, id: isUuid(q) ? q : null, address: isIPv4(q) ? q : null }
    return { items: (await searchEverywhere(tx, wanted)).map(searchResultView) }
  },
} satisfies Partial<Handlers>
