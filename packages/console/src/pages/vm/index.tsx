import { isApiError, type Vm } from '@slipway/sdk'
import { useParams } from '@tanstack/react-router'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { ResourceAlerts } from '../../features/alerts.tsx'
import { Annotations, EditButton } from '../../features/annotations.tsx'
import { EventTable } from '../../features/event-table.tsx'
import { HealthBadge } from '../../features/health/badge.tsx'
import { HealthReasons } from '../../features/health/reasons.tsx'
import { LatestOperation } from '../../features/latest-operation.tsx'
import { CrashActions, disabledActionReasons, VmActions } from '../../features/vm-actions.tsx'
import { ButtonLink } from '../../ui/button.tsx'
import { ErrorState } from '../../ui/error.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Page, Section, Skeleton } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { ChangeVm } from './change.tsx'
import { Connect } from './connect.tsx'
import { CrashLog } from './crash-log.tsx'
import { DeleteVm } from './delete.tsx'
import { DeletedVmPage } from './deleted.tsx'
import { VmDisks } from './disks.tsx'
import { VmFacts } from './facts.tsx'
import { Interfaces } from './interfaces.tsx'
import { SerialLog } from './serial-log.tsx'
import { VmTabs } from './tabs.tsx'

export function VmPage() {
  const projectId = useProjectId()
  const { vmId = '' } = useParams({ strict: false })
  const vm = useQuery(read('vmGet', { params: { project_id: projectId, vm_id: vmId } }))
  const isDeleted = isApiError(vm.error) && vm.error.code === 'not_found'
  if (isDeleted) return <DeletedVmPage projectId={projectId} vmId={vmId} last={vm.data} />
  if (!vm.data)
    return (
      <Page title="VM" trail={[['VMs', `/projects/${projectId}/vms`]]}>
        {vm.error ? <ErrorState error={vm.error} onRetry={() => vm.refetch()} /> : <Skeleton rows={10} />}
      </Page>
    )
  return <ExistingVmPage vm={vm.data} />
}

function ExistingVmPage({ vm }: { vm: Vm }) {
  const projectId = vm.project_id
  const whyNot = useWhyNot('member')
  return (
    <Page
      title={vm.name}
      trail={[['VMs', `/projects/${projectId}/vms`]]}
      reasons={whyNot ? [whyNot] : disabledActionReasons(vm)}
      aside={
        <>
          <StateBadge state={vm.state} since={vm.updated_at} />
          <HealthBadge vm={vm} />
          <EditButton resource={vm} kind="vm" whyNot={whyNot} />
        </>
      }
      actions={
        <>
          <VmActions vm={vm} />
          <ButtonLink
            to="/projects/$projectId/vms/new"
            params={{ projectId }}
            search={{ like: vm.id }}
            icon={<Icon name="copy" size={14} />}
          >
            Create similar
          </ButtonLink>
          <DeleteVm vm={vm} />
        </>
      }
    >
      <VmTabs vm={vm} />
      <Annotations resource={vm} />
      <Connect vm={vm} />
      <ResourceAlerts
        resourceId={vm.id}
        detail={<CrashLog vm={vm} />}
        actionOf={({ alert }) => alert.kind === 'crashed' && <CrashActions vm={vm} reason={whyNot} />}
      />
      <HealthReasons vm={vm} />
      <LatestOperation projectId={projectId} resourceId={vm.id} />
      <VmFacts vm={vm} />
      <VmDisks vm={vm} />
      <Interfaces vm={vm} />
      <SerialLog vm={vm} />
      <Section title="Events">
        <EventTable projectId={projectId} resourceId={vm.id} limit={20} />
      </Section>
      <ChangeVm vm={vm} />
    </Page>
  )
}
