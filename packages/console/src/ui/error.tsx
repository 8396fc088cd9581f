import { type ApiErrorCode, isApiError } from '@slipway/sdk'
import { CircleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { BillingButton } from '../features/billing-button.tsx'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'

/** What to do about it, where the message does not say so already. */
const advice: Partial<Record<ApiErrorCode, string>> = {
  not_found: 'It may have been deleted, or it belongs to another project.',
  permission_denied: 'Ask an owner of the organization for a higher role.',
  quota_exceeded: 'Delete something, or ask the operator for a higher quota.',
  out_of_stock: 'Choose another location or a smaller type, or try again later.',
  payment_method_required: 'An owner adds one in billing; then try again here.',
  rate_limited: 'Wait a moment, then try again.',
  internal_error: 'Try again. If it happens again, give the operator the request id.',
  unavailable: 'The page tries again by itself.',
  connection_failed: 'Check the connection. The page tries again by itself.',
  timed_out: 'The page tries again by itself.',
  unexpected_answer: 'A proxy may stand in between, or the service is of another version.',
}

/** What the service says to programs, in words for people at this page. */
const rewording: Partial<Record<ApiErrorCode, string>> = {
  payment_method_required: 'The organization has no payment method that works.',
}

interface Parts {
  message: string
  advice: string
  requestId: string
  code: string
}

function partsOf(error: Error): Parts {
  if (!isApiError(error))
    return { message: error.message, advice: 'Reload the page.', requestId: '', code: '' }
  const fields = error.details
    .map(({ field, message }) => `${field.replace(/^\//, '')} ${message}`)
    .join('; ')
  const isSaid = fields === '' || error.message.includes(error.details[0]?.message ?? '')
  return {
    message: rewording[error.code] ?? (isSaid ? error.message : `${error.message} (${fields})`),
    advice: advice[error.code] ?? '',
    requestId: error.requestId,
    code: error.code,
  }
}

function RequestId({ id }: { id: string }) {
  if (!id) return null
  return (
    <span className="mt-1 flex max-w-full items-center gap-1 text-sm text-ink-muted">
      <span className="shrink-0">Request id</span> <span className="mono truncate">{id}</span>
      <CopyButton text={id} label="Copy the request id" />
    </span>
  )
}

/** An error inside a form, a dialog or a message. */
export function ErrorNote({ error, children }: { error: Error; children?: ReactNode }) {
  const { message, advice, requestId, code } = partsOf(error)
  return (
    <div role="alert" className="rounded-md border border-red/40 bg-red-soft p-3 text-sm">
      <p className="break-words text-red-text">{message}</p>
      {advice && <p className="mt-1 text-ink-muted">{advice}</p>}
      {children}
      {code === 'payment_method_required' && (
        <div className="mt-2">
          <BillingButton />
        </div>
      )}
      <RequestId id={requestId} />
    </div>
  )
}

/** Instead of content that could not be read. */
export function ErrorState({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const { message, advice, requestId, code } = partsOf(error)
  return (
    <div role="alert" className="card flex flex-col items-start gap-2 p-6">
      <div className="flex items-center gap-2 font-medium text-red-text">
        <CircleAlert size={16} /> {message}
      </div>
      {advice && <p className="text-ink-muted">{advice}</p>}
      <div className="mt-1 flex gap-2">
        {code === 'payment_method_required' && <BillingButton />}
        {onRetry && <Button onClick={onRetry}>Try again</Button>}
      </div>
      <RequestId id={requestId} />
    </div>
  )
}
