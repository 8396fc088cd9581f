import { type Vm, vmDiskChangeStates } from '@slipway/sdk'
import { useState } from 'react'
import { useWhyNot } from '../../api/me.ts'
import { AttachToVm, MountDialog } from '../../features/attach-disk.tsx'
import { DetachDialog } from '../../features/disks/detach-dialog.tsx'
import { sizeText } from '../../lib/format.ts'
import { stateWord } from '../../lib/states.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Section } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'

type VmDisk = Vm['disks'][number]

const isData = ({ attachment_type }: VmDisk) => attachment_type === 'data'

export function VmDisks({ vm }: { vm: Vm }) {
  const [isAttaching, setAttaching] = useState(false)
  const [mounting, setMounting] = useState<VmDisk | null>(null)
  const [detaching, setDetaching] = useState<VmDisk | null>(null)
  const forbidden = useWhyNot('member')
  const wrongState = vmDiskChangeStates.includes(vm.state)
    ? ''
    : `To change disks, the VM must be ${vmDiskChangeStates.map(stateWord).join(' or ')}.`
  const reason = forbidden ?? wrongState
  const columns: Column<VmDisk>[] = [
    { key: 'name', title: 'Name', width: 'minmax(140px, 2fr)', cell: (disk) => disk.name },
    {
      key: 'use',
      title: 'Purpose',
      width: '90px',
      cell: (disk) => (disk.attachment_type === 'os' ? 'OS' : 'data'),
    },
    {
      key: 'type',
      title: 'Type',
      width: 'minmax(120px, 1fr)',
      isFoldable: true,
      cell: (disk) => disk.type,
    },
    { key: 'size', title: 'Size', width: '100px', align: 'right', cell: (disk) => sizeText(disk.size) },
    { key: 'mode', title: 'Mode', width: '110px', isFoldable: true, cell: (disk) => disk.mode },
  ]
  if (vm.disks.some(isData))
    columns.push(
      actionColumn(
        '240px',
        (disk: VmDisk) =>
          isData(disk) && (
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
    )
  return (
    <Section
      title="Disks"
      // The head of the page already says what the user's role forbids.
      about={forbidden ? '' : wrongState}
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
