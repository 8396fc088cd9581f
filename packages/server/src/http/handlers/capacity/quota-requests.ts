import {
  createQuotaRequest,
  decideOnQuotaRequest,
  withdrawQuotaRequest,
} from '../../../accounts/quota-requests.ts'
import { listAllQuotaRequests, listQuotaRequests } from '../../../store/identity/quota-requests.ts'
import { quotaRequestView } from '../../../views/catalogue.ts'
import { emptyResponse, type Handlers } from '../../context.ts'
import { pageById } from '../../pages.ts'

export const quotaRequestHandlers = {
  quotaRequestList: (context) =>
    pageById(
      context,
      (...page) => listQuotaRequests(context.tx, context.organizationId, ...page),
      quotaRequestView,
    ),

  quotaRequestCreate: async ({ tx, by, body }) => quotaRequestView(await createQuotaRequest(tx, by, body)),

  quotaRequestDelete: ({ tx, by, params }) =>
    emptyResponse(withdrawQuotaRequest(tx, by, params.quota_request_id)),

  adminQuotaRequestList(context) {
    const state = context.query.state ?? null
    return pageById(
      context,
      (beforeId, limit) => listAllQuotaRequests(context.tx, { state, beforeId, limit }),
      quotaRequestView,
    )
  },

  adminQuotaRequestUpdate: async ({ tx, by, params, body }) =>
    quotaRequestView(await decideOnQuotaRequest(tx, by, params.quota_request_id, body)),
} satisfies Partial<Handlers>
