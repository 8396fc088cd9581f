import { type ErrorComponentProps, useRouter } from '@tanstack/react-router'
import { useMe } from '../api/me.ts'
import { ButtonLink } from '../ui/button.tsx'
import { ErrorState } from '../ui/error.tsx'
import { Page } from '../ui/page.tsx'

export function NotFound() {
  return (
    <Page title="Not found">
      <p className="text-ink-muted">This page does not exist. Check the address, or use the search.</p>
      <Back />
    </Page>
  )
}

const Back = () => (
  <div>
    <ButtonLink kind="primary" to="/">
      Go to the overview
    </ButtonLink>
  </div>
)

/** A project that the user cannot see. The API does not reveal whether it exists. */
export function NoProjectAccess() {
  const { caller } = useMe()
  return (
    <Page title="No access to this project">
      <p className="max-w-2xl text-ink-muted">
        The project does not exist, or {caller.email} is not a member of its organization. Ask the person who
        sent you the link for an invitation, or sign in with another account.
      </p>
      <Back />
    </Page>
  )
}

export function OperatorsOnly() {
  const { caller } = useMe()
  return (
    <Page title="For operators only">
      <p className="max-w-2xl text-ink-muted">
        These pages show the hosts and tenants of the whole service. {caller.email} is not an operator. An
        operator can grant you access.
      </p>
      <Back />
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
