import { Outlet, useLocation } from '@tanstack/react-router'
import { CreditCard } from 'lucide-react'
import { useEffect } from 'react'
import { useLiveProject } from '../api/live.ts'
import { useMe, useProject } from '../api/me.ts'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { BillingButton } from '../features/billing-button.tsx'
import { needsPaymentMethod } from '../lib/error-words.ts'
import { lastProject } from '../lib/last-project.ts'
import { Page } from '../ui/page.tsx'
import { NotFound } from './page-states.tsx'

/** Follows the live events for every page of a project, and shows the gate while there is no payment method. */
export function ProjectFrame() {
  const project = useProject()
  const { projects } = useMe()
  const isKnown = projects.some(({ id }) => id === project.id)
  const { pathname } = useLocation()
  const gate = useQuery({
    ...read('quotaList', { params: { project_id: project.id } }),
    enabled: isKnown,
    // The way out of the gate leads through another tab.
    refetchInterval: ({ state }) => (needsPaymentMethod(state.error) ? 2_000 : false),
  })
  const isGated = needsPaymentMethod(gate.error)
  useLiveProject(project.id, isKnown && !isGated)
  useEffect(() => {
    if (isKnown) lastProject.set(project.id)
  }, [project.id, isKnown])

  if (!isKnown) return <NotFound />
  const isOfOrganization = /\/settings\/(members|billing)$/.test(pathname)
  if (isGated && !isOfOrganization) return <Gate />
  return <Outlet />
}

function Gate() {
  return (
    <Page title="Payment method needed">
      <div className="card flex max-w-2xl flex-col items-start gap-3 p-6">
        <CreditCard size={20} className="text-accent-text" />
        <p className="text-lg font-semibold">Add a payment method to use this project</p>
        <p className="text-ink-muted">
          The organization has none yet, so nothing can be created or read here. Billing opens in another tab;
          once a card is in, this page goes on by itself.
        </p>
        <BillingButton />
      </div>
    </Page>
  )
}
