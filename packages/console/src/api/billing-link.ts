import type { BillingDashboard, BillingInvoice } from '@slipway/contract'
import { ApiError, type ApiErrorCode } from '@slipway/sdk'
import { queryOptions } from '@tanstack/react-query'
import { fetchUnlessOffline } from './connection.ts'

/** Calls a path below a billing link. The token in the path is the credential, so no session is sent. */
async function call<Result>(token: string, path: string, init: RequestInit): Promise<Result> {
  const response = await fetchUnlessOffline(`/billing/${encodeURIComponent(token)}/${path}`, {
    credentials: 'omit',
    ...init,
  })
  const body = await response.json()
  if (response.ok) return body
  const { code, message, request_id } = body as { code: ApiErrorCode; message: string; request_id: string }
  throw new ApiError({ code, message, status: response.status, requestId: request_id })
}

export const readDashboard = (token: string, month: string) =>
  queryOptions({
    queryKey: ['billing', token, month],
    queryFn: ({ signal }) =>
      call<BillingDashboard>(token, `data${month && `?month=${month}`}`, { method: 'GET', signal }),
  })

export const readInvoice = (token: string, id: string) =>
  queryOptions({
    queryKey: ['billing', token, 'invoice', id],
    queryFn: ({ signal }) => call<BillingInvoice>(token, `data/invoices/${id}`, { method: 'GET', signal }),
  })

const post = <Result = unknown>(token: string, path: string, body: object = {}) =>
  call<Result>(token, path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

export const saveCard = (token: string, card: { number: string; expiry: string }) => post(token, 'card', card)
export const removePaymentMethod = (token: string) => post(token, 'card/remove')
export const providerLink = (token: string) => post<{ url: string }>(token, 'provider')
