import { type ApiErrorCode, isApiError } from '@slipway/sdk'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { useLiveProject } from '../api/live.ts'
import { useMe, useProject } from '../api/me.ts'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { BillingButton } from '../features/billing-button.tsx'
import { GettingStarted } from '../features/getting-started.tsx'
import { lastProject } from '../lib/last-project.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Page, PageTitleContext, Skeleton } from '../ui/page.tsx'
import { NoProjectAccess } from './page-states.tsx'

/** The layout of every project page. It follows live events, and explains why a project is not accessible. */
export function ProjectFrame() {
  const project = useProject()
  const { projects } = useMe()
  const isKnown = projects.some(({ id }) => id === project.id)
  const { pathname } = useLocation()
  const gate = useQuery({
    ...read('quotaList', { params: { project_id: project.id } }),
    enabled: isKnown,
    // The user fixes the cause in another tab, so poll.
    refetchInterval: ({ state }) => (gateOf(state.error) ? 2_000 : false),
  })
  const closedGate = gateOf(gate.error)
  useLiveProject(project.id, isKnown && !closedGate)
  useEffect(() => {
    if (isKnown) lastProject.set(project.id)
  }, [project.id, isKnown])

  if (!isKnown) return <NoProjectAccess />
  // These pages also work without a payment method.
  const worksWithoutPayment = /\/settings\/(members|billing|ssh-keys)$/.test(pathname)
  // The page already loads, but stays hidden until the service has accepted or refused the project.
  const isHidden = gate.isPending && !worksWithoutPayment
  return (
    <PageTitleContext value={project.name}>
      {isHidden && <Skeleton rows={10} className="m-6 max-md:m-4" />}
      {/* The wrapper has no box, so that a page can have the height of the window. */}
      <div className={isHidden ? 'hidden' : 'contents'}>
        {(!worksWithoutPayment && closedGate) || <Outlet />}
      </div>
    </PageTitleContext>
  )
}

interface GateProps {
  icon: ReactNode
  title: string
  text: string
  action: ReactNode
}

const gates: Partial<Record<ApiErrorCode, ReactNode>> = {
  payment_method_required: <PaymentGate />,
  suspended: (
    <Gate
      icon={<Icon name="ban" size={20} className="text-red-text" />}
      title="This organization is suspended"
      text="You cannot view, create or change resources until the operator restores the organization. Contact the operator. Running VMs are still billed, and billing stays available."
      action={<BillingButton />}
    />
  ),
  totp_enrolment_required: (
    <Gate
      icon={<Icon name="shield-check" size={20} className="text-accent-text" />}
      title="This organization requires two-factor authentication"
      text="Set it up for your account, then sign in again."
      action={
        <ButtonLink kind="primary" to="/account">
          Set up two-factor authentication
        </ButtonLink>
      }
    />
  ),
}

const gateOf = (error: unknown): ReactNode => (isApiError(error) ? gates[error.code] : undefined)

function Gate({ icon, title, text, action }: GateProps) {
  return (
    <Page title={title}>
      <div className="card flex max-w-2xl flex-col items-start gap-3 p-4">
        {icon}
        <p className="text-ink-muted">{text}</p>
        {action}
      </div>
    </Page>
  )
}

/** Shown until the organization has a payment method. Lists the first steps. */
function PaymentGate() {
  const { name, organization_id } = useProject()
  const { organizations } = useMe()
  const organization = organizations.find(({ id }) => id === organization_id)?.name ?? 'Your organization'
  return (
    <Page title="Getting started">
      <div className="flex max-w-2xl flex-col gap-4">
        <p className="break-words text-ink-muted">
          {organization} has no payment method yet. Add one to start creating resources in {name}.
        </p>
        <GettingStarted hasCard={false} />
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
