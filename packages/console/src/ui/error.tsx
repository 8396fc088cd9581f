import { createContext, type ReactNode, useContext } from 'react'
import { errorText } from '../lib/error-text.ts'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import { Icon } from './icon.tsx'

/** A function from the app that returns the action to show next to an error. */
const ErrorActions = createContext<(error: Error) => ReactNode>(() => null)
export const ErrorActionProvider = ErrorActions.Provider

function useErrorAction(error: Error, action: ReactNode): ReactNode {
  const actionOf = useContext(ErrorActions)
  return action || actionOf(error)
}

function RequestId({ id }: { id: string }) {
  if (!id) return null
  return (
    <span className="mt-1 flex max-w-full items-center gap-1 text-sm text-ink-muted">
      <span className="shrink-0">Request ID</span> <span className="mono truncate">{id}</span>
      <CopyButton text={id} label="Copy the request ID" />
    </span>
  )
}

interface ErrorNoteProps {
  error: Error
  action?: ReactNode
  /** True for reads, which the page retries. Changes are never retried. */
  isRead?: boolean
}

/** Shows an error inside a form, a dialog or a toast. */
export function ErrorNote({ error, action, isRead = false }: ErrorNoteProps) {
  const { message, advice, requestId } = errorText(error, isRead ? 'read' : 'change')
  const offered = useErrorAction(error, action)
  return (
    <div role="alert" className="rounded-md border border-red/40 bg-red-soft p-3 text-sm">
      <p className="break-words text-red-text">{message}</p>
      {advice && <p className="mt-1 text-ink-muted">{advice}</p>}
      {offered && <div className="mt-2">{offered}</div>}
      <RequestId id={requestId} />
    </div>
  )
}

/** Replaces content that could not be loaded. */
export function ErrorState({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const { message, advice, requestId } = errorText(error, 'read')
  const offered = useErrorAction(error, undefined)
  return (
    <div role="alert" className="card flex flex-col items-start gap-2 p-6">
      <div className="flex items-center gap-2 font-medium text-red-text">
        <Icon name="circle-alert" size={16} /> {message}
      </div>
      {advice && <p className="text-ink-muted">{advice}</p>}
      <div className="mt-1 flex gap-2">
        {offered}
        {onRetry && <Button onClick={onRetry}>Try again</Button>}
      </div>
      <RequestId id={requestId} />
    </div>
  )
}
