import type { ListItem } from '@slipway/sdk'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { operatorCommands } from '../../lib/shell.ts'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { tenantOf } from './gpu-cells.tsx'

/** Asks for confirmation before an operator stops or deletes a tenant's VM. */
export function VmQuestion({
  vm,
  what,
  onClose,
}: {
  vm: ListItem<'adminVmList'>
  what: 'stop' | 'delete'
  onClose: () => void
}) {
  const act = useAction({
    run: async () => {
      if (what === 'stop') await client.adminVmStop({ vm_id: vm.id })
      else await client.adminVmDelete({ vm_id: vm.id })
    },
    done: () => (what === 'stop' ? `Stopping ${vm.name}` : `Deleting ${vm.name}`),
    invalidates: ['adminVmList', 'adminOperationList', 'adminEventList'],
    showsErrors: true,
  })
  const submit = submitProps(act, undefined, onClose)
  const commands = operatorCommands({
    cli: `slipway admin vm ${what} ${vm.id}`,
    method: what === 'stop' ? 'POST' : 'DELETE',
    path: `/vms/${vm.id}${what === 'stop' ? '/stop' : ''}`,
  })
  const tenant = tenantOf(vm)
  if (what === 'stop')
    return (
      <Confirm
        isOpen
        onClose={onClose}
        title={`Stop VM ${vm.name}`}
        action="Stop VM"
        commands={commands}
        {...submit}
      >
        <p>
          The VM belongs to {tenant}. Its GPUs will be released. Disks and addresses will be kept. Any local
          scratch data will be lost.
        </p>
      </Confirm>
    )
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete VM ${vm.name}`}
      action="Delete VM"
      nameToType={vm.name}
      commands={commands}
      {...submit}
    >
      <p>
        The VM belongs to {tenant}. Its OS disk and any local scratch data will be permanently deleted. Data
        disks will be kept.
      </p>
    </Confirm>
  )
}
