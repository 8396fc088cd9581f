import { type ApiErrorCode, isApiError } from '@slipway/sdk'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { Ban, CreditCard, ShieldCheck } from 'lucide-react'
import { type ReactNode, useEffect } from 'react'
import { useLiveProject } from '../api/live.ts'
import { useMe, useProject } from '../api/me.ts'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { BillingButton } from '../features/billing-button.tsx'
import { FirstSteps } from '../features/first-steps.tsx'
import { lastProject } from '../lib/last-project.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Page } from '../ui/page.tsx'
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
  if (closed && !worksUnpaid) return <Gate {...closed} />
  return <Outlet />
}

interface GateProps {
  icon: ReactNode
  title: string
  heading: string
  words: string
  wayOut: ReactNode
  below?: ReactNode
}

const gates: Partial<Record<ApiErrorCode, GateProps>> = {
  payment_method_required: {
    icon: <CreditCard size={20} className="text-accent-text" />,
    title: 'Payment method needed',
    heading: 'Add a payment method to use this project',
    words:
      'The organization has none yet, so nothing can be created or read here. Billing opens in another tab; once a card is in, this page goes on by itself.',
    wayOut: (
      <div className="flex flex-wrap items-center gap-4">
        <BillingButton />
        <Link to="/catalogue" className="link">
          Types, prices and stock
        </Link>
      </div>
    ),
    below: <FirstSteps hasCard={false} />,
  },
  suspended: {
    icon: <Ban size={20} className="text-red-text" />,
    title: 'Suspended',
    heading: 'The operator has suspended this organization',
    words:
      'Nothing can be created, changed or read here until the operator restores it; ask the operator of this service. What runs is metered as before, and billing still works.',
    wayOut: <BillingButton />,
  },
  totp_enrolment_required: {
    icon: <ShieldCheck size={20} className="text-accent-text" />,
    title: 'Second factor needed',
    heading: 'This organization demands a second factor',
    words: 'Set one up for your account, then sign in with it.',
    wayOut: (
      <ButtonLink kind="primary" to="/account">
        Set up a second factor
      </ButtonLink>
    ),
  },
}

const gateOf = (error: unknown): GateProps | undefined => (isApiError(error) ? gates[error.code] : undefined)

function Gate({ icon, title, heading, words, wayOut, below }: GateProps) {
  return (
    <Page title={title}>
      <div className="flex max-w-2xl flex-col gap-4">
        <div className="card flex flex-col items-start gap-3 p-4">
          {icon}
          <p className="text-lg font-semibold">{heading}</p>
          <p className="text-ink-muted">{words}</p>
          {wayOut}
        </div>
        {below}
      </div>
    </Page>
  )
}
