import type { HostVm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useMe } from '../../api/me.ts'

const look = 'font-medium hover:text-accent-text hover:underline'

/** Links to the page of a VM if the operator is a member of its project, otherwise to its row in the fleet's VMs. */
export function TenantVmLink({ vm }: { vm: Pick<HostVm, 'id' | 'name' | 'project_id'> }) {
  const { projects } = useMe()
  if (projects.some(({ id }) => id === vm.project_id))
    return (
      <Link
        to="/projects/$projectId/vms/$vmId"
        params={{ projectId: vm.project_id, vmId: vm.id }}
        className={look}
      >
        {vm.name}
      </Link>
    )
  return (
    <Link to="/fleet/vms" search={{ q: vm.id }} className={look}>
      {vm.name}
    </Link>
  )
}
