import Type, { type Static } from 'typebox'
import { defineRoutes } from '../route.ts'
import {
  body,
  Empty,
  NonEmptyTimestamp,
  PageQuery,
  PlainText,
  pagedList,
  pageQuery,
  record,
  Timestamp,
  Uuid,
} from '../schema.ts'
import { organizationQuotaNames } from '../vm-types.ts'

export const quotaRequestStates = ['open', 'approved', 'rejected'] as const
export type QuotaRequestState = (typeof quotaRequestStates)[number]

const Reason = Type.String({
  ...PlainText({ minLength: 1, maxLength: 500, examples: ['A training run with 16 GPUs in December'] }),
  description: 'Why the organization needs the higher limit. Operators see this text.',
})
const Note = Type.String({
  ...PlainText({ maxLength: 500, examples: ['New hosts arrive this week'] }),
  description: 'An explanation for the organization.',
})

export const QuotaRequest = record('QuotaRequest', {
  id: Uuid,
  organization_id: Uuid,
  organization_name: Type.String({ examples: ['Harbour Labs'] }),
  name: Type.Enum([...organizationQuotaNames]),
  max: Type.Integer({ description: 'The requested limit.' }),
  current_max: Type.Integer({ description: 'The limit that applies now.' }),
  reason: Type.String(),
  state: Type.Enum([...quotaRequestStates]),
  requested_by: Type.String({
    description: 'The user or access key, in the same format as the actor of an event.',
    examples: ['user:0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7b01'],
  }),
  note: Type.String({ description: 'The operator’s explanation of the decision. Empty if there is none.' }),
  created_at: NonEmptyTimestamp,
  decided_at: Timestamp,
})
export type QuotaRequest = Static<typeof QuotaRequest>

export const quotaRequestRoutes = defineRoutes({
  quotaRequestList: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/quota-requests',
    tag: 'Organizations',
    summary: 'List quota requests',
    description: 'Decided requests are kept for 90 days.',
    access: 'viewer',
    query: PageQuery,
    response: pagedList('QuotaRequestList', QuotaRequest),
  },
  quotaRequestCreate: {
    method: 'POST',
    path: '/v0.1/organizations/{organization_id}/quota-requests',
    tag: 'Organizations',
    summary: 'Request a higher quota from the operators',
    description:
      'The operators get an alert, and approve or reject the request. Each quota can have one open request; to request a different limit, withdraw the open request first.',
    access: 'admin',
    body: body('QuotaRequestCreate', {
      name: Type.Enum([...organizationQuotaNames]),
      max: Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description: 'The requested limit. It must be higher than the current one.',
        examples: [32],
      }),
      reason: Reason,
    }),
    response: QuotaRequest,
    errors: ['already_exists'],
  },
  quotaRequestDelete: {
    method: 'DELETE',
    path: '/v0.1/organizations/{organization_id}/quota-requests/{quota_request_id}',
    tag: 'Organizations',
    summary: 'Withdraw an open quota request',
    access: 'admin',
    response: Empty,
    errors: ['conflict'],
  },
})

export const adminQuotaRequestRoutes = defineRoutes({
  adminQuotaRequestList: {
    method: 'GET',
    path: '/v0.1/admin/quota-requests',
    tag: 'Operators',
    summary: 'List quota requests of all organizations',
    access: 'operator',
    isInventory: true,
    query: Type.Object({ ...pageQuery, state: Type.Optional(Type.Enum([...quotaRequestStates])) }),
    response: pagedList('AdminQuotaRequestList', QuotaRequest),
  },
  adminQuotaRequestUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/quota-requests/{quota_request_id}',
    tag: 'Operators',
    summary: 'Approve or reject a quota request',
    description:
      'Approval sets the quota of the organization to the requested limit, unless the quota is already higher. Owners and admins of the organization are informed by e-mail, with the note.',
    access: 'operator',
    body: body('QuotaRequestUpdate', {
      state: Type.Enum(['approved', 'rejected']),
      note: Type.Optional(Note),
    }),
    response: QuotaRequest,
    errors: ['conflict'],
  },
})
