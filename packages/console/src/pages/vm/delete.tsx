import type { Vm } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useWhyNot } from '../../api/me.ts'
import { protectionReason } from '../../features/annotations.tsx'
import { publicAddressOf, reservedAddressOf } from '../../lib/addresses.ts'
import { dataDisksOf } from '../../lib/disks.ts'
import { plural } from '../../lib/format.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'

/** A VM's delete button. Its dialog requires the user to type the VM's name. */
export function DeleteVm({ vm }: { vm: Vm }) {
  const [isAsking, setAsking] = useState(false)
  const whyNot = useWhyNot('member')
  const remove = useOperation({
    projectId: vm.project_id,
    run: () => client.vmDelete({ project_id: vm.project_id, vm_id: vm.id }),
    done: () => `Deleted ${vm.name}`,
    failed: () => `Could not delete ${vm.name}`,
    invalidates: ['vmGet', 'vmList', 'quotaList'],
    showsErrors: true,
  })
  const dataDisks = dataDisksOf([vm])
  const address = publicAddressOf(vm)
  const isReserved = reservedAddressOf(vm) !== ''
  const shownAddress = <span className="mono">{address}</span>
  return (
    <>
      <Button
        kind="danger"
        icon={<Icon name="trash" size={14} />}
        aria-label="Delete VM"
        reason={
          whyNot ??
          (vm.state === 'STATE_DELETING' ? 'The VM is being deleted.' : undefined) ??
          protectionReason(vm)
        }
        onClick={() => setAsking(true)}
      >
        Delete
      </Button>
      {isAsking && (
        <Confirm
          isOpen
          onClose={() => setAsking(false)}
          title={`Delete VM ${vm.name}`}
          action="Delete VM"
          {...submitProps(remove, undefined, () => setAsking(false))}
          nameToType={vm.name}
          commands={projectCommands(vm.project_id, {
            cli: `slipway vm delete ${shellQuote(vm.name)}`,
            method: 'DELETE',
            path: `/vms/${vm.id}`,
          })}
        >
          <p>
            <b className="font-medium text-ink">Will be deleted:</b> the VM with all data on its OS disk
            {vm.scratch_gb > 0 && ' and local scratch disk'}
            {address !== '' && !isReserved && <>, and its address {shownAddress}</>}.
          </p>
          <p className="mt-1">
            <b className="font-medium text-ink">Will be kept:</b>{' '}
            {dataDisks.length > 0 &&
              `${plural(dataDisks.length, 'data disk')}: ${dataDisks.map(({ name }) => name).join(', ')}`}
            {dataDisks.length > 0 && isReserved && '; '}
            {isReserved && <>the reserved address {shownAddress}</>}
            {dataDisks.length === 0 && !isReserved && 'nothing. The VM has no data disks'}.
          </p>
          {vm.instance_group_id && (
            <p className="mt-1">The VM is a member of a group, which will have one fewer VM.</p>
          )}
        </Confirm>
      )}
    </>
  )
}
