import type { Vm } from '@slipway/sdk'
import { TabLinks } from '../../ui/tabs.tsx'

export function VmTabs({ vm }: { vm: Vm }) {
  const base = `/projects/${vm.project_id}/vms/${vm.id}`
  return (
    <TabLinks
      label="VM"
      tabs={[
        { label: 'Overview', to: base, isExact: true },
        { label: 'Metrics', to: `${base}/metrics` },
        { label: 'Console', to: `${base}/console` },
      ]}
    />
  )
}
