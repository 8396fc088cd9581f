import type { Disk } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { sizeText } from '../../lib/format.ts'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
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
    done: () => `Resized ${disk.name} to ${size} ${unit}`,
    failed: () => `Not resized: ${disk.name}`,
    invalidates: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Resize ${disk.name}`}
      action="Resize disk"
      {...submitProps(grow, undefined, onClose)}
      reason={
        Number(size) > Number(amount)
          ? undefined
          : `Enter more than ${sizeText(disk.size)}. A disk cannot shrink.`
      }
    >
      <TextField
        label={`New size (${unit})`}
        inputMode="numeric"
        value={size}
        onChange={setSize}
        hint={`Currently ${sizeText(disk.size)}. Resize the file system in the VM afterwards.`}
        autoFocus
      />
    </FormDialog>
  )
}

export function DeleteDialog({ projectId, disk, onClose }: DialogProps) {
  const remove = useOperation({
    projectId,
    run: () => client.diskDelete({ project_id: projectId, disk_id: disk.id }),
    done: () => `Deleted disk ${disk.name}`,
    failed: () => `Not deleted: disk ${disk.name}`,
    invalidates: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete ${disk.name}`}
      action="Delete disk"
      {...submitProps(remove, undefined, onClose)}
      nameToType={disk.name}
    >
      <p>All data on this {sizeText(disk.size)} disk will be permanently deleted.</p>
    </Confirm>
  )
}
