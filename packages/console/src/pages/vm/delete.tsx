import type { Vm } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useWhyNot } from '../../api/me.ts'
import { whyProtected } from '../../features/annotations.tsx'
import { plural } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, submitting } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'

/** Stands beside the other actions of a VM, and asks for its name before anything is lost. */
export function DeleteVm({ vm }: { vm: Vm }) {
  const [isAsking, setAsking] = useState(false)
  const whyNot = useWhyNot('member')
  const remove = useOperation({
    projectId: vm.project_id,
    run: () => client.vmDelete({ project_id: vm.project_id, vm_id: vm.id }),
    done: () => `Deleted ${vm.name}`,
    failed: () => `Could not delete ${vm.name}`,
    touches: ['vmGet', 'vmList', 'quotaList'],
    showsErrors: true,
  })
  const dataDisks = vm.disks.filter(({ attachment_type }) => attachment_type === 'data')
  return (
    <>
      <Button
        kind="danger"
        icon={<Icon name="trash" size={14} />}
        aria-label="Delete VM"
        reason={
          whyNot ??
          (vm.state === 'STATE_DELETING' ? 'The VM is being deleted.' : undefined) ??
          whyProtected(vm)
        }
        onClick={() => setAsking(true)}
      >
        Delete
      </Button>
      {isAsking && (
        <Confirm
          isOpen
          onClose={() => setAsking(false)}
          title={`Delete ${vm.name}`}
          action="Delete VM"
          {...submitting(remove, undefined, () => setAsking(false))}
          nameToType={vm.name}
        >
          <p>
            <b className="font-medium text-ink">Will be deleted:</b> the VM, its OS disk with all data, and
            its addresses.
          </p>
          <p className="mt-1">
            <b className="font-medium text-ink">Will be kept:</b>{' '}
            {dataDisks.length === 0
              ? 'nothing, because no data disk is attached.'
              : `${plural(dataDisks.length, 'data disk')}: ${dataDisks.map(({ name }) => name).join(', ')}.`}
          </p>
        </Confirm>
      )}
    </>
  )
}
