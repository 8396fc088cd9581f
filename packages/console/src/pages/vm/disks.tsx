import { type Disk, type Vm, vmDiskChangeStates, vmType } from '@slipway/sdk'
import { HardDrive, Unplug } from 'lucide-react'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { sizeWords } from '../../lib/format.ts'
import { stateWord } from '../../lib/state-words.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Section } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'

type VmDisk = Vm['disks'][number]

export function VmDisks({ vm }: { vm: Vm }) {
  const [isAttaching, setAttaching] = useState(false)
  const forbidden = useWhyNot('member')
  const target = { project_id: vm.project_id, vm_id: vm.id }
  const detach = useOperation({
    projectId: vm.project_id,
    run: (disk: VmDisk) => client.vmDetachDisks(target, { detach_disks: [disk.id] }),
    done: (disk) => `Detached ${disk.name}`,
    failed: (disk) => `${disk.name} could not be detached`,
    touches: ['vmGet', 'diskList'],
  })
  const reason =
    forbidden ??
    (vmDiskChangeStates.includes(vm.state)
      ? undefined
      : `Disks can change while the VM is ${vmDiskChangeStates.map(stateWord).join(' or ')}; it is ${stateWord(vm.state)}.`)
  const columns: Column<VmDisk>[] = [
    { key: 'name', title: 'Name', width: 'minmax(140px, 2fr)', cell: (disk) => disk.name },
    {
      key: 'use',
      title: 'Use',
      width: '90px',
      cell: (disk) => (disk.attachment_type === 'os' ? 'system' : 'data'),
    },
    { key: 'type', title: 'Type', width: 'minmax(120px, 1fr)', cell: (disk) => disk.type },
    { key: 'size', title: 'Size', width: '100px', align: 'right', cell: (disk) => sizeWords(disk.size) },
    { key: 'mode', title: 'Mode', width: '110px', cell: (disk) => disk.mode },
    {
      key: 'action',
      title: '',
      width: '120px',
      align: 'right',
      isBare: true,
      cell: (disk) =>
        disk.attachment_type === 'data' && (
          <Button
            size="small"
            icon={<Unplug size={14} />}
            reason={reason}
            isBusy={detach.isPending && detach.variables?.id === disk.id}
            onClick={() => detach.mutate(disk)}
          >
            Detach
          </Button>
        ),
    },
  ]
  return (
    <Section
      title="Disks"
      actions={
        <Button
          size="small"
          icon={<HardDrive size={14} />}
          reason={reason}
          onClick={() => setAttaching(true)}
        >
          Attach disk
        </Button>
      }
    >
      <Table label="Disks" rows={vm.disks} columns={columns} rowKey={(disk) => disk.id} />
      {isAttaching && <AttachDialog vm={vm} onClose={() => setAttaching(false)} />}
    </Section>
  )
}

function AttachDialog({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const disks = useQuery(readAll('diskList', { project_id: vm.project_id, locations: vm.location }))
  const [diskId, setDiskId] = useState('')
  const [mode, setMode] = useState<'read-write' | 'read-only'>('read-write')
  const attachable = (disks.data ?? []).filter((disk) => mayAttach(disk, vm))
  const chosen = attachable.find(({ id }) => id === diskId) ?? attachable[0]
  const attach = useOperation({
    projectId: vm.project_id,
    run: (disk: Disk) =>
      client.vmAttachDisks(
        { project_id: vm.project_id, vm_id: vm.id },
        { attach_disks: [{ disk_id: disk.id, attachment_type: 'data', mode }] },
      ),
    done: (disk) => `Attached ${disk.name} to ${vm.name}`,
    failed: (disk) => `${disk.name} could not be attached`,
    touches: ['vmGet', 'diskList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Attach a disk to ${vm.name}`}
      action="Attach disk"
      isBusy={attach.isPending}
      error={attach.error}
      reason={chosen ? undefined : `No free disk in ${vm.location}: create one on the page Disks`}
      onSubmit={() => chosen && attach.mutate(chosen, { onSuccess: onClose })}
    >
      <SelectField
        label="Disk"
        value={chosen?.id ?? ''}
        onChange={setDiskId}
        choices={
          attachable.length > 0
            ? attachable.map((disk) => ({
                value: disk.id,
                label: `${disk.name} (${sizeWords(disk.size)} ${disk.type})`,
              }))
            : [{ value: '', label: `No free disk in ${vm.location}` }]
        }
        hint={`Disks of ${vm.location} that are free, or attached read-only elsewhere.`}
      />
      <SelectField
        label="Mode"
        value={mode}
        onChange={(value) => setMode(value as typeof mode)}
        choices={[
          { value: 'read-write', label: 'Read and write' },
          { value: 'read-only', label: 'Read only' },
        ]}
      />
    </FormDialog>
  )
}

function mayAttach(disk: Disk, vm: Vm): boolean {
  if (disk.state !== 'available' || disk.attached_to.some(({ vm_id }) => vm_id === vm.id)) return false
  if (disk.type === 'shared-volume') return vmType(vm.type)?.isWholeHost ?? false
  return disk.attached_to.every(({ mode }) => mode === 'read-only')
}
