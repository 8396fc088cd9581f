import type { Snapshot } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { usePrices } from '../../api/prices.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { copyPriceText, diskUsdPerHour, gibOf, monthlyText } from '../../lib/disks.ts'
import { sizeText } from '../../lib/format.ts'
import { nameProblem } from '../../lib/names.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'

interface SnapshotProps {
  projectId: string
  snapshot: Snapshot
  onClose: () => void
}

export function CreateSnapshot({ projectId, onClose }: Omit<SnapshotProps, 'snapshot'>) {
  const params = { project_id: projectId }
  const disks = useQuery(readAll('diskList', params))
  const usable = (disks.data ?? []).filter(
    ({ type, state }) => type === 'persistent-ssd' && state === 'available',
  )
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState('')
  const [allowsUnfrozen, setAllowsUnfrozen] = useState(false)
  const disk = usable.find(({ id }) => id === chosen) ?? usable[0]
  const prices = usePrices(projectId).data?.items ?? []
  const vms = useQuery(readAll('vmList', params))
  const writerIds = new Set(
    disk?.attached_to.flatMap(({ vm_id, mode }) => (mode === 'read-write' ? [vm_id] : [])),
  )
  const writers = (vms.data ?? []).filter(({ id, state }) => writerIds.has(id) && state !== 'STATE_SHUTOFF')
  const mustFreeze = !allowsUnfrozen
  const create = useOperation({
    projectId,
    run: () =>
      client.snapshotCreate(params, {
        name,
        disk_id: disk!.id,
        ...(mustFreeze && { require_frozen: true }),
      }),
    done: () => `Created snapshot ${name}`,
    failed: () => `Could not create snapshot ${name}`,
    invalidates: ['snapshotList', 'organizationQuotaList'],
    showsErrors: true,
  })
  const problem = disk ? (name === '' ? 'Enter a name' : nameProblem(name)) : 'Create a disk first'
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create snapshot"
      action="Create snapshot"
      {...submitProps(create, undefined, onClose)}
      reason={problem || undefined}
      commands={
        disk &&
        projectCommands(projectId, {
          cli: `slipway snapshot create ${shellQuote(name || 'NAME')} --disk ${shellQuote(disk.name)}${mustFreeze ? ' --require-frozen' : ''}`,
          path: '/snapshots',
          body: { name, disk_id: disk.id, ...(mustFreeze && { require_frozen: true }) },
          terraform: 'snapshot',
        })
      }
    >
      <SelectField
        label="Disk"
        value={disk?.id ?? ''}
        onChange={setChosen}
        choices={usable.map(({ id, name, size }) => ({ value: id, label: `${name}, ${sizeText(size)}` }))}
        hint={disk && copyPriceText('snapshot', disk.size, prices)}
      />
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        problem={nameProblem(name)}
        autoComplete="off"
        autoFocus
      />
      {writers.length > 0 && (
        <CheckField
          label="Copy even if the file systems cannot be frozen"
          hint={`${writers.map(({ name }) => name).join(', ')} can write to the disk. Without a guest agent, the file systems cannot be frozen: the snapshot is then like a disk after a power failure. If this is off, the copy fails instead.`}
          isChecked={allowsUnfrozen}
          onChange={setAllowsUnfrozen}
        />
      )}
    </FormDialog>
  )
}

export function RestoreSnapshot({ projectId, snapshot, onClose }: SnapshotProps) {
  const minGib = gibOf(snapshot.size)
  const [name, setName] = useState(`${snapshot.name}-copy`.slice(0, 63))
  const [amount, setAmount] = useState(String(minGib))
  const restore = useOperation({
    projectId,
    run: () =>
      client.diskCreate({ project_id: projectId }, { name, size: `${amount}GiB`, snapshot_id: snapshot.id }),
    done: () => `Created disk ${name} from ${snapshot.name}`,
    failed: () => `Could not create disk ${name}`,
    invalidates: ['diskList', 'quotaList'],
    showsErrors: true,
  })
  const prices = usePrices(projectId).data?.items ?? []
  const price = diskUsdPerHour({ type: 'persistent-ssd', size: `${amount}GiB` }, prices)
  const sizeProblem = Number(amount) >= minGib ? '' : `Enter at least ${minGib} GiB`
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Restore snapshot ${snapshot.name}`}
      action="Create disk"
      {...submitProps(restore, undefined, onClose)}
      reason={(name === '' ? 'Enter a name' : nameProblem(name)) || sizeProblem || undefined}
      commands={projectCommands(projectId, {
        cli: `slipway disk create ${shellQuote(name || 'NAME')} --snapshot ${shellQuote(snapshot.name)} --size ${shellQuote(`${amount}GiB`)}`,
        path: '/disks',
        body: { name, size: `${amount}GiB`, snapshot_id: snapshot.id },
        terraform: 'disk',
      })}
    >
      <TextField
        label="Name of the new disk"
        value={name}
        onChange={setName}
        problem={nameProblem(name)}
        autoComplete="off"
        autoFocus
      />
      <TextField
        label="Size (GiB)"
        inputMode="numeric"
        value={amount}
        onChange={setAmount}
        problem={sizeProblem}
        hint={`Creates a new disk in ${snapshot.location}${price === null ? '' : ` for ${monthlyText(price)}`}. The original disk is not changed.${Number(amount) > minGib ? ' The file system keeps its size; resize it in the VM afterwards.' : ''}`}
      />
    </FormDialog>
  )
}

export function DeleteSnapshot({ projectId, snapshot, onClose }: SnapshotProps) {
  const remove = useOperation({
    projectId,
    run: () => client.snapshotDelete({ project_id: projectId, snapshot_id: snapshot.id }),
    done: () => `Deleted snapshot ${snapshot.name}`,
    failed: () => `Could not delete snapshot ${snapshot.name}`,
    invalidates: ['snapshotList', 'organizationQuotaList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete snapshot ${snapshot.name}`}
      action="Delete snapshot"
      {...submitProps(remove, undefined, onClose)}
      nameToType={snapshot.name}
      commands={projectCommands(projectId, {
        cli: `slipway snapshot delete ${shellQuote(snapshot.name)}`,
        method: 'DELETE',
        path: `/snapshots/${snapshot.id}`,
      })}
    >
      <p>The snapshot will be permanently deleted. Disks that were created from it keep their data.</p>
    </Confirm>
  )
}
