import { useProjectId } from '../api/me.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { useLacksPaymentMethod } from './alerts.tsx'

/** Links to the form for a new VM or, if there is no payment method, to billing. */
export function CreateVmButton({ kind = 'primary' }: { kind?: 'primary' | 'plain' }) {
  const params = { projectId: useProjectId() }
  if (useLacksPaymentMethod())
    return (
      <ButtonLink kind="primary" to="/projects/$projectId/settings/billing" params={params}>
        Add a payment method
      </ButtonLink>
    )
  return (
    <ButtonLink
      kind={kind}
      icon={<Icon name="plus" size={16} />}
      hotkey="c"
      to="/projects/$projectId/vms/new"
      params={params}
    >
      Create VM
    </ButtonLink>
  )
}
