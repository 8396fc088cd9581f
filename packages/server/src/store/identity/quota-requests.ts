import type { OrganizationQuotaName, QuotaRequestState } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { filteredStatement, isBefore, type PageParams, statement } from '../../postgres/statement.ts'

export interface QuotaRequestRow {
  id: string
  organization_id: string
  organization_name: string
  name: OrganizationQuotaName
  max: number
  current_max: number
  reason: string
  state: QuotaRequestState
  requested_by: string
  note: string
  created_at: Date
  decided_at: Date | null
}

const from = (requests: string) => `
  SELECT r.*, o.name AS organization_name, coalesce(q.max, 0) AS current_max
  FROM ${requests} r JOIN organizations o ON o.id = r.organization_id
  LEFT JOIN organization_quotas q ON q.organization_id = r.organization_id AND q.name = r.name`

interface NewQuotaRequest {
  id: string
  organizationId: string
  name: OrganizationQuotaName
  max: number
  reason: string
  requestedBy: string
}

/** Returns undefined if the quota already has an open request. */
export const insertQuotaRequest = statement<QuotaRequestRow, NewQuotaRequest, Tx>(
  'quota_request_insert',
  `WITH added AS (
     INSERT INTO quota_requests (id, organization_id, name, max, reason, requested_by)
     VALUES (:id, :organizationId, :name, :max, :reason, :requestedBy)
     ON CONFLICT (organization_id, name) WHERE decided_at IS NULL DO NOTHING RETURNING *)
   ${from('added')}`,
).one

/** Locks the request, so that it is decided or withdrawn once. */
export const lockQuotaRequest = statement<QuotaRequestRow, { id: string }, Tx>(
  'quota_request_lock',
  `${from('quota_requests')} WHERE r.id = :id FOR UPDATE OF r`,
).oneBy('id')

export const deleteQuotaRequest = statement<never, { id: string }, Tx>(
  'quota_request_delete',
  'DELETE FROM quota_requests WHERE id = :id',
).runBy('id')

export const decideQuotaRequest = statement<
  QuotaRequestRow,
  { id: string; state: 'approved' | 'rejected'; note: string },
  Tx
>(
  'quota_request_decide',
  `WITH decided AS (
     UPDATE quota_requests SET state = :state, note = :note, decided_at = slipway_now() WHERE id = :id RETURNING *)
   ${from('decided')}`,
).oneBy('id', 'state', 'note')

export const listQuotaRequests = statement<QuotaRequestRow, PageParams & { organizationId: string }>(
  'quota_request_list',
  `${from('quota_requests')}
   WHERE r.organization_id = :organizationId AND ${isBefore('r.id')} ORDER BY r.id DESC LIMIT :limit`,
).allBy('organizationId', 'beforeId', 'limit')

export const listAllQuotaRequests = filteredStatement<
  QuotaRequestRow,
  PageParams & { state: QuotaRequestState | null }
>(
  'quota_request_admin_list',
  (given) => `${from('quota_requests')} WHERE ${isBefore('r.id')} ${given} ORDER BY r.id DESC LIMIT :limit`,
  {
    state: 'r.state = :state',
  },
).all
