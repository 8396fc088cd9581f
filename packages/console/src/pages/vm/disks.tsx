import { type Vm, vmDiskChangeStates } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useWhyNot } from '../../api/me.ts'
import { AttachToVm, MountDialog } from '../../features/attach-disk.tsx'
import { sizeText } from '../../lib/format.ts'
import { guestDevice, unmountCommands } from '../../lib/guest-commands.ts'
import { stateWord } from '../../lib/states.ts'
import { actionColumn } from '../../ui/action-column.tsx'
import { Button } from '../../ui/button.tsx'
import { CommandTabs } from '../../ui/commands.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Section } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'

type VmDisk = Vm['disks'][number]

export function VmDisks({ vm }: { vm: Vm }) {
  const [isAttaching, setAttaching] = useState(false)
  const [mounting, setMounting] = useState<VmDisk | null>(null)
  const [detaching, setDetaching] = useState<VmDisk | null>(null)
  const forbidden = useWhyNot('member')
  const reason =
    forbidden ??
    (vmDiskChangeStates.includes(vm.state)
      ? undefined
      : `To change disks, the VM must be ${vmDiskChangeStates.map(stateWord).join(' or ')}. It is ${stateWord(vm.state)}.`)
  const columns: Column<VmDisk>[] = [
    { key: 'name', title: 'Name', width: 'minmax(140px, 2fr)', cell: (disk) => disk.name },
    {
      key: 'use',
      title: 'Use',
      width: '90px',
      cell: (disk) => (disk.attachment_type === 'os' ? 'OS' : 'data'),
    },
    { key: 'type', title: 'Type', width: 'minmax(120px, 1fr)', cell: (disk) => disk.type },
    { key: 'size', title: 'Size', width: '100px', align: 'right', cell: (disk) => sizeText(disk.size) },
    { key: 'mode', title: 'Mode', width: '110px', cell: (disk) => disk.mode },
    actionColumn(
      '240px',
      (disk: VmDisk) =>
        disk.attachment_type === 'data' && (
          <>
            <Button size="small" onClick={() => setMounting(disk)}>
              Mount commands
            </Button>
            <Button
              size="small"
              icon={<Icon name="unplug" size={14} />}
              reason={reason}
              aria-label={`Detach ${disk.name}`}
              onClick={() => setDetaching(disk)}
            >
              Detach
            </Button>
          </>
        ),
    ),
  ]
  return (
    <Section
      title="Disks"
      actions={
        <Button
          size="small"
          icon={<Icon name="hard-drive" size={14} />}
          reason={reason}
          onClick={() => setAttaching(true)}
        >
          Attach disk
        </Button>
      }
    >
      <Table label="Disks" rows={vm.disks} columns={columns} rowKey={(disk) => disk.id} />
      {isAttaching && <AttachToVm vm={vm} onClose={() => setAttaching(false)} />}
      {mounting && <MountDialog disk={mounting} onClose={() => setMounting(null)} />}
      {detaching && <DetachDialog vm={vm} disk={detaching} onClose={() => setDetaching(null)} />}
    </Section>
  )
}

/** Confirms the detachment of a disk: a running VM loses writes to a disk that is still mounted. */
function DetachDialog({ vm, disk, onClose }: { vm: Vm; disk: VmDisk; onClose: () => void }) {
  const detach = useOperation({
    projectId: vm.project_id,
    run: () => client.vmDetachDisks({ project_id: vm.project_id, vm_id: vm.id }, { detach_disks: [disk.id] }),
    done: () => `Detached ${disk.name}`,
    failed: () => `Not detached: ${disk.name}`,
    invalidates: ['vmGet', 'diskList'],
    showsErrors: true,
  })
  const isRunning = vm.state === 'STATE_RUNNING'
  return (
    <Confirm
      isOpen
      isWide={isRunning}
      onClose={onClose}
      title={`Detach ${disk.name}`}
      action="Detach disk"
      {...submitProps(detach, undefined, onClose)}
    >
      {isRunning ? (
        <>
          <p>
            {vm.name} is running, and the disk will be removed immediately.{' '}
            {disk.mode === 'read-only'
              ? 'Programs that read from it will fail.'
              : 'Data that the VM has not written yet will be lost, and the file system may be damaged.'}{' '}
            <b className="font-medium text-ink">Unmount the disk first.</b>
          </p>
          <p className="mt-3 mb-1">
            Device in the VM: <span className="mono break-all text-ink">{guestDevice(disk)}</span>
          </p>
          <CommandTabs label="Commands to run in the VM" lines={[['Shell', unmountCommands(disk)]]} />
        </>
      ) : (
        <p>The VM is stopped. The disk and its data will be kept, and you can attach it again.</p>
      )}
    </Confirm>
  )
}
