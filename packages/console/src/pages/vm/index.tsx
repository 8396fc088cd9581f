import type { Vm } from '@slipway/sdk'
import { useWhyNot } from '../../api/me.ts'
import { ResourceAlerts } from '../../features/alerts.tsx'
import { Annotations } from '../../features/annotations.tsx'
import { EventTable } from '../../features/event-table.tsx'
import { HealthReasons } from '../../features/health/reasons.tsx'
import { LatestOperation } from '../../features/latest-operation.tsx'
import { CrashActions } from '../../features/vm-actions.tsx'
import { Section } from '../../ui/page.tsx'
import { ChangeVm } from './change.tsx'
import { Connect } from './connect.tsx'
import { CrashLog } from './crash-log.tsx'
import { VmDisks } from './disks.tsx'
import { VmFacts } from './facts.tsx'
import { Interfaces } from './interfaces.tsx'
import { VmTabPage } from './page.tsx'
import { SerialLog } from './serial-log.tsx'

export const VmPage = () => <VmTabPage hasAlerts>{(vm) => <Overview vm={vm} />}</VmTabPage>

function Overview({ vm }: { vm: Vm }) {
  const projectId = vm.project_id
  const whyNot = useWhyNot('member')
  return (
    <>
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
        <EventTable projectId={projectId} resourceId={vm.id} limit={20} omit={['on']} />
      </Section>
      <ChangeVm vm={vm} />
    </>
  )
}
