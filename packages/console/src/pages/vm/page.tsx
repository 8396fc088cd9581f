import { isApiError, type Vm } from '@slipway/sdk'
import { useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { useHasCrashAlert } from '../../features/alerts.tsx'
import { EditButton } from '../../features/annotations.tsx'
import { HealthBadge } from '../../features/health/badge.tsx'
import { crashActions, disabledActionReasons, VmActions } from '../../features/vm-actions.tsx'
import { ButtonLink } from '../../ui/button.tsx'
import { ErrorState } from '../../ui/error.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Page, Skeleton } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { DeleteVm } from './delete.tsx'
import { DeletedVmPage } from './deleted.tsx'
import { VmTabs } from './tabs.tsx'

interface VmTabPageProps {
  /** True if the tab shows the alerts of the VM. The alert of a crashed VM has buttons to reset and to stop it. */
  hasAlerts?: boolean
  children: (vm: Vm) => ReactNode
}

/**
 * A tab of a VM. The header is the same on all tabs, so that it does not move when the tab changes. Only the actions
 * that an alert offers are omitted.
 */
export function VmTabPage({ hasAlerts = false, children }: VmTabPageProps) {
  const projectId = useProjectId()
  const { vmId = '' } = useParams({ strict: false })
  const vm = useQuery(read('vmGet', { params: { project_id: projectId, vm_id: vmId } }))
  const whyNot = useWhyNot('member')
  const isOfferedInAlert = useHasCrashAlert(vmId) && hasAlerts && vm.data?.state === 'STATE_CRASHED'
  const trail: [string, string][] = [['VMs', `/projects/${projectId}/vms`]]
  const isDeleted = isApiError(vm.error) && vm.error.code === 'not_found'
  if (isDeleted) return <DeletedVmPage projectId={projectId} vmId={vmId} last={vm.data} />
  if (!vm.data)
    return (
      <Page title="VM" trail={trail}>
        {vm.error ? <ErrorState error={vm.error} onRetry={() => vm.refetch()} /> : <Skeleton rows={10} />}
      </Page>
    )
  return (
    <Page
      title={vm.data.name}
      trail={trail}
      reasons={whyNot ? [whyNot] : disabledActionReasons(vm.data)}
      aside={
        <>
          <StateBadge state={vm.data.state} since={vm.data.updated_at} />
          <HealthBadge vm={vm.data} />
          <EditButton resource={vm.data} kind="vm" whyNot={whyNot} />
        </>
      }
      actions={
        <>
          <VmActions vm={vm.data} omit={isOfferedInAlert ? crashActions : []} />
          <ButtonLink
            to="/projects/$projectId/vms/new"
            params={{ projectId }}
            search={{ like: vm.data.id }}
            icon={<Icon name="copy" size={14} />}
          >
            Create similar
          </ButtonLink>
          <DeleteVm vm={vm.data} />
        </>
      }
    >
      <VmTabs vm={vm.data} />
      {children(vm.data)}
    </Page>
  )
}
