import type { Disk } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { sizeWords } from '../../lib/format.ts'
import { Confirm, FormDialog, submitting } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'

interface DialogProps {
  projectId: string
  disk: Disk
  onClose: () => void
}

export function GrowDialog({ projectId, disk, onClose }: DialogProps) {
  const [, amount = '', unit = 'GiB'] = /^(\d+)(GiB|TiB)$/.exec(disk.size) ?? []
  const [size, setSize] = useState(amount)
  const grow = useOperation({
    projectId,
    run: () => client.diskUpdate({ project_id: projectId, disk_id: disk.id }, { size: `${size}${unit}` }),
    done: () => `${disk.name} has ${size} ${unit}`,
    failed: () => `${disk.name} could not be grown`,
    touches: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Grow ${disk.name}`}
      action="Grow disk"
      {...submitting(grow, undefined, onClose)}
      reason={
        Number(size) > Number(amount) ? undefined : `More than ${sizeWords(disk.size)}: a disk only grows`
      }
    >
      <TextField
        label={`New size, ${unit}`}
        inputMode="numeric"
        value={size}
        onChange={setSize}
        hint={`Now ${sizeWords(disk.size)}. Grow the file system inside the VM afterwards.`}
        autoFocus
      />
    </FormDialog>
  )
}

export function DeleteDialog({ projectId, disk, onClose }: DialogProps) {
  const remove = useOperation({
    projectId,
    run: () => client.diskDelete({ project_id: projectId, disk_id: disk.id }),
    done: () => `Deleted the disk ${disk.name}`,
    failed: () => `The disk ${disk.name} could not be deleted`,
    touches: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete ${disk.name}`}
      action="Delete disk"
      {...submitting(remove, undefined, onClose)}
      nameToType={disk.name}
    >
      <p>The disk goes with all {sizeWords(disk.size)} of data on it. This cannot be undone.</p>
    </Confirm>
  )
}
