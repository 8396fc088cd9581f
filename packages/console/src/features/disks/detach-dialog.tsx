import type { Vm } from '@slipway/sdk'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { unmountCommands } from '../../lib/guest-commands.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { CommandTabs } from '../../ui/commands.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'

type VmDisk = Vm['disks'][number]

/** Asks before a disk is detached, because a running VM loses writes to a disk that is still mounted. */
export function DetachDialog({ vm, disk, onClose }: { vm: Vm; disk: VmDisk; onClose: () => void }) {
  const detach = useOperation({
    projectId: vm.project_id,
    run: () => client.vmDetachDisks({ project_id: vm.project_id, vm_id: vm.id }, { detach_disks: [disk.id] }),
    done: () => `Detached ${disk.name}`,
    failed: () => `Could not detach ${disk.name}`,
    invalidates: ['vmGet', 'diskList'],
    showsErrors: true,
  })
  const isRunning = vm.state === 'STATE_RUNNING'
  return (
    <Confirm
      isOpen
      isWide={isRunning}
      onClose={onClose}
      title={`Detach disk ${disk.name}`}
      action="Detach disk"
      {...submitProps(detach, undefined, onClose)}
      commands={projectCommands(vm.project_id, {
        cli: `slipway disk detach ${shellQuote(disk.name)} ${shellQuote(vm.name)}`,
        path: `/vms/${vm.id}/detach-disks`,
        body: { detach_disks: [disk.id] },
      })}
    >
      {isRunning ? (
        <>
          <p>
            {vm.name} is running, and the disk will be removed immediately.{' '}
            {disk.mode === 'read-only'
              ? 'Programs that read from it will fail.'
              : 'Data that the VM has not written yet will be lost, and the file system may be damaged.'}
          </p>
          <p className="mt-3 mb-1">
            <b className="font-medium text-ink">Unmount the disk first.</b> Run this in the VM:
          </p>
          <CommandTabs label="Commands to run in the VM" lines={[['Shell', unmountCommands(disk)]]} />
        </>
      ) : (
        <p>The VM is stopped. The disk and its data will be kept, and you can attach it again.</p>
      )}
    </Confirm>
  )
}
