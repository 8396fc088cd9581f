import { type ErrorComponentProps, Link, useRouter } from '@tanstack/react-router'
import { ErrorState } from '../ui/error.tsx'
import { Page } from '../ui/page.tsx'

export function NotFound() {
  return (
    <Page title="Not found">
      <p className="text-ink-muted">
        This page does not exist.{' '}
        <Link to="/" className="link">
          Go to the overview
        </Link>
      </p>
    </Page>
  )
}

export function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter()
  return (
    <Page title="Something went wrong">
      <ErrorState
        error={error instanceof Error ? error : new Error(String(error))}
        onRetry={() => {
          reset()
          void router.invalidate()
        }}
      />
    </Page>
  )
}
