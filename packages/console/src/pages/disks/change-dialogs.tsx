import type { Disk } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { usePrices } from '../../api/prices.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { DetachDialog } from '../../features/disks/detach-dialog.tsx'
import { diskUsdPerHour, monthlyText } from '../../lib/disks.ts'
import { plural, sizeText } from '../../lib/format.ts'
import { growCommands } from '../../lib/guest-commands.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { CommandTabs } from '../../ui/commands.tsx'
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
  const newSize = `${size}${unit}`
  const prices = usePrices(projectId).data?.items ?? []
  const monthly = (size: string) => {
    const price = diskUsdPerHour({ type: disk.type, size }, prices)
    return price === null ? '' : `, ${monthlyText(price)}`
  }
  const showsCommands = disk.type === 'persistent-ssd' && disk.attached_to.length > 0
  const grow = useOperation({
    projectId,
    run: () => client.diskUpdate({ project_id: projectId, disk_id: disk.id }, { size: newSize }),
    done: () => `Resized ${disk.name} to ${size} ${unit}`,
    failed: () => `Could not resize ${disk.name}`,
    invalidates: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      isWide={showsCommands}
      onClose={onClose}
      title={`Resize disk ${disk.name}`}
      action="Resize disk"
      {...submitProps(grow, undefined, onClose)}
      reason={Number(size) > Number(amount) ? undefined : `Enter more than ${sizeText(disk.size)}`}
      commands={projectCommands(projectId, {
        cli: `slipway disk resize ${shellQuote(disk.name)} --size ${shellQuote(newSize)}`,
        method: 'PATCH',
        path: `/disks/${disk.id}`,
        body: { size: newSize },
        terraform: 'disk',
        changes: disk.name,
      })}
    >
      <TextField
        label={`New size (${unit})`}
        inputMode="numeric"
        value={size}
        onChange={setSize}
        hint={`Currently ${sizeText(disk.size)}${monthly(disk.size)}. A disk cannot shrink.`}
        autoFocus
      />
      {Number(size) > Number(amount) && (
        <p className="figures">
          New size: {sizeText(newSize)}
          {monthly(newSize)}
        </p>
      )}
      {showsCommands && (
        <div>
          <p className="mb-1 text-sm text-ink-muted">Then resize the file system in the VM:</p>
          <CommandTabs label="Commands to run in the VM" lines={[['Shell', growCommands(disk)]]} />
        </div>
      )}
    </FormDialog>
  )
}

export function DeleteDialog({ projectId, disk, onClose }: DialogProps) {
  const copies = useQuery(readAll('snapshotList', { project_id: projectId })).data ?? []
  const snapshots = copies.filter(({ created_from }) => created_from === disk.id).length
  const remove = useOperation({
    projectId,
    run: () => client.diskDelete({ project_id: projectId, disk_id: disk.id }),
    done: () => `Deleted disk ${disk.name}`,
    failed: () => `Could not delete disk ${disk.name}`,
    invalidates: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete disk ${disk.name}`}
      action="Delete disk"
      {...submitProps(remove, undefined, onClose)}
      nameToType={disk.name}
      commands={projectCommands(projectId, {
        cli: `slipway disk delete ${shellQuote(disk.name)}`,
        method: 'DELETE',
        path: `/disks/${disk.id}`,
      })}
    >
      <p>
        All data on this {sizeText(disk.size)} disk will be permanently deleted.
        {snapshots > 0 && ` Its ${plural(snapshots, 'snapshot')} will be kept.`}
      </p>
    </Confirm>
  )
}

/** Detaches a disk from the only VM that has it. */
export function DetachFromVm({ projectId, disk, onClose }: DialogProps) {
  const vm = useQuery(
    read('vmGet', { params: { project_id: projectId, vm_id: disk.attached_to[0]?.vm_id ?? '' } }),
  ).data
  const attached = vm?.disks.find(({ id }) => id === disk.id)
  return vm && attached ? <DetachDialog vm={vm} disk={attached} onClose={onClose} /> : null
}
