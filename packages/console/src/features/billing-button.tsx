import { useMutation } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import type { ComponentProps, ReactNode } from 'react'
import { client, queryClient } from '../api/client.ts'
import { meQueries } from '../api/me.ts'
import { needsPaymentMethod } from '../lib/error-text.ts'
import { showToast } from '../lib/toasts.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'

/** Opens the billing dashboard, or one of its invoices, in a new tab. Each click creates a new link. */
function useBilling(organizationId: string, invoiceId: string | undefined) {
  const { projectId } = useParams({ strict: false })
  const open = useMutation({
    mutationFn: async (tab: Window | null) => {
      const projects = await queryClient.ensureQueryData(meQueries[1])
      const id = organizationId || projects.find((project) => project.id === projectId)?.organization_id
      if (!id) throw new Error('Choose a project first.')
      const { url } = await client.organizationBilling({ organization_id: id })
      const target = invoiceId ? `${url}/invoices/${invoiceId}` : url
      if (tab) tab.location.href = target
      else location.assign(target)
    },
    onError: (error, tab) => {
      tab?.close()
      showToast({ title: 'Could not open the billing dashboard', error })
    },
  })
  // Open the tab in the click handler: browsers block tabs that open after a response.
  return { isBusy: open.isPending, onClick: () => open.mutate(window.open('', '_blank')) }
}

interface BillingButtonProps extends Pick<ComponentProps<typeof Button>, 'kind' | 'reason'> {
  organizationId?: string
  label?: string
  /** Opens this invoice instead of the dashboard. */
  invoiceId?: string | undefined
}

export function BillingButton({
  organizationId = '',
  label = 'Open billing',
  invoiceId,
  kind = 'primary',
  reason,
}: BillingButtonProps) {
  const billing = useBilling(organizationId, invoiceId)
  return (
    <Button kind={kind} reason={reason} icon={<Icon name="external-link" size={14} />} {...billing}>
      {label}
    </Button>
  )
}

/** A text link that opens an invoice. */
export function InvoiceLink({
  organizationId,
  invoiceId,
  children,
}: {
  organizationId: string
  invoiceId: string
  children: ReactNode
}) {
  const { isBusy, onClick } = useBilling(organizationId, invoiceId)
  return (
    <button
      type="button"
      aria-busy={isBusy || undefined}
      disabled={isBusy}
      onClick={onClick}
      className="inline-flex items-center gap-1.5 rounded-[3px] font-medium hover:text-accent-text hover:underline"
    >
      {children}
      <Icon name="external-link" size={12} aria-hidden="true" className="text-ink-muted" />
    </button>
  )
}

/** Returns the action for an error: a billing button if a payment method is missing. */
export const billingAction = (error: Error) => (needsPaymentMethod(error) ? <BillingButton /> : null)
