import type { HostVm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'

/** Links to a VM's page for operators. */
export const TenantVmLink = ({
  vm,
  className = 'font-medium hover:text-accent-text hover:underline',
}: {
  vm: Pick<HostVm, 'id' | 'name'>
  className?: string
}) => (
  <Link to="/fleet/vms/$vmId" params={{ vmId: vm.id }} className={className}>
    {vm.name}
  </Link>
)
