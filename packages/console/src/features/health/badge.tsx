import type { Vm } from '@slipway/sdk'
import { StateBadge } from '../../ui/state.tsx'

/** Shows the health of a VM's GPUs if one of them is faulty. */
export function HealthBadge({ vm }: { vm: Vm }) {
  const { status, reasons } = vm.health
  if (status !== 'degraded' && status !== 'unhealthy') return null
  return (
    <span title={reasons.map(({ message }) => message).join('\n')}>
      <StateBadge state={status} />
    </span>
  )
}
