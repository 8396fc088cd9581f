import { type ApiErrorCode, isApiError } from '@slipway/sdk'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { useLiveProject } from '../api/live.ts'
import { useMe, useProject } from '../api/me.ts'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { BillingButton } from '../features/billing-button.tsx'
import { FirstSteps } from '../features/first-steps.tsx'
import { lastProject } from '../lib/last-project.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Page, Skeleton } from '../ui/page.tsx'
import { NotFound } from './page-states.tsx'

/** Follows the live events for every page of a project, and shows why it is closed, while it is. */
export function ProjectFrame() {
  const project = useProject()
  const { projects } = useMe()
  const isKnown = projects.some(({ id }) => id === project.id)
  const { pathname } = useLocation()
  const gate = useQuery({
    ...read('quotaList', { params: { project_id: project.id } }),
    enabled: isKnown,
    // The way out of the gate leads through another tab.
    refetchInterval: ({ state }) => (gateOf(state.error) ? 2_000 : false),
  })
  const closed = gateOf(gate.error)
  useLiveProject(project.id, isKnown && !closed)
  useEffect(() => {
    if (isKnown) lastProject.set(project.id)
  }, [project.id, isKnown])

  if (!isKnown) return <NotFound />
  const worksUnpaid = /\/settings\/(members|billing|ssh-keys)$/.test(pathname)
  if (worksUnpaid) return <Outlet />
  if (closed) return closed
  // The page reads from the start, but what it is refused is not shown before the reason for all of it is known.
  return (
    <>
      {gate.isPending && <Skeleton rows={10} className="m-6 max-md:m-4" />}
      <div hidden={gate.isPending}>
        <Outlet />
      </div>
    </>
  )
}

interface GateProps {
  icon: ReactNode
  title: string
  words: string
  wayOut: ReactNode
}

const gates: Partial<Record<ApiErrorCode, ReactNode>> = {
  payment_method_required: <FirstStepsGate />,
  suspended: (
    <Gate
      icon={<Icon name="ban" size={20} className="text-red-text" />}
      title="This organization is suspended"
      words="You cannot view, create or change resources until the operator restores the organization. Contact the operator. Running VMs are still billed, and billing stays available."
      wayOut={<BillingButton />}
    />
  ),
  totp_enrolment_required: (
    <Gate
      icon={<Icon name="shield-check" size={20} className="text-accent-text" />}
      title="This organization requires two-factor authentication"
      words="Set it up for your account, then sign in again."
      wayOut={
        <ButtonLink kind="primary" to="/account">
          Set up two-factor authentication
        </ButtonLink>
      }
    />
  ),
}

const gateOf = (error: unknown): ReactNode => (isApiError(error) ? gates[error.code] : undefined)

function Gate({ icon, title, words, wayOut }: GateProps) {
  return (
    <Page title={title}>
      <div className="card flex max-w-2xl flex-col items-start gap-3 p-4">
        {icon}
        <p className="text-ink-muted">{words}</p>
        {wayOut}
      </div>
    </Page>
  )
}

/** A new organization has no card yet: what it can do without one comes first. */
function FirstStepsGate() {
  const { name, organization_id } = useProject()
  const { organizations } = useMe()
  const organization = organizations.find(({ id }) => id === organization_id)?.name ?? 'Your organization'
  return (
    <Page title="Getting started">
      <div className="flex max-w-2xl flex-col gap-4">
        <p className="break-words text-ink-muted">
          {organization} has no payment method yet. Add one to start creating resources in {name}.
        </p>
        <FirstSteps hasCard={false} />
        <p className="text-ink-muted">
          Browse first:{' '}
          <Link to="/catalogue" className="link">
            types, prices and availability
          </Link>
        </p>
      </div>
    </Page>
  )
}
