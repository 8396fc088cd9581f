import { type Disk, type Vm, vmDiskChangeStates, vmType } from '@slipway/sdk'
import { type ReactNode, useState } from 'react'
import { useOperation } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { sizeText } from '../lib/format.ts'
import { mountCommands } from '../lib/guest-commands.ts'
import { projectCommands, shellQuote } from '../lib/shell.ts'
import { Button } from '../ui/button.tsx'
import { CommandTabs } from '../ui/commands.tsx'
import { Dialog, FormDialog } from '../ui/dialog.tsx'
import { SelectField } from '../ui/field.tsx'
import { CreateDisk } from './create-disk.tsx'
import { VmField } from './name-fields/vm-field.tsx'

type Mode = Vm['disks'][number]['mode']

/** Attaches a disk to the given VM. Lists the disks that can be attached, and can create one. */
export function AttachToVm({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const disks = useQuery(readAll('diskList', { project_id: vm.project_id, locations: vm.location }))
  const [diskId, setDiskId] = useState('')
  const [isCreating, setCreating] = useState(false)
  const attachable = (disks.data ?? []).filter((disk) => mayAttach(disk, vm))
  const disk = attachable.find(({ id }) => id === diskId) ?? onlyOne(attachable)
  const waiting = disks.data ? '' : disks.error ? 'The disks could not be loaded' : 'Loading disks…'
  if (isCreating)
    return (
      <CreateDisk
        projectId={vm.project_id}
        location={vm.location}
        onClose={() => setCreating(false)}
        onCreated={({ id }) => setDiskId(id)}
      />
    )
  return (
    <AttachDialog
      projectId={vm.project_id}
      title={`Attach a disk to ${vm.name}`}
      vm={vm}
      disk={disk}
      reason={
        disk
          ? undefined
          : waiting ||
            (attachable.length > 0 ? 'Choose a disk' : `No unattached disks in ${vm.location}. Create one.`)
      }
      onClose={onClose}
    >
      {disks.data && attachable.length === 0 ? (
        <p className="text-ink-muted">
          No unattached disks in {vm.location}. A disk is kept when its VM is deleted.
        </p>
      ) : (
        <SelectField
          label="Disk"
          value={disk?.id ?? ''}
          onChange={setDiskId}
          choices={choicesFrom(
            attachable.map(({ id, name, size }) => ({ value: id, label: `${name} (${sizeText(size)})` })),
            waiting || 'Choose a disk',
          )}
          hint={`Disks in ${vm.location} that are unattached or attached read-only.`}
        />
      )}
      <div>
        <Button size="small" onClick={() => setCreating(true)}>
          Create a disk in {vm.location}
        </Button>
      </div>
    </AttachDialog>
  )
}

/** Attaches the given disk. Lists the VMs that can use it. */
export function AttachThisDisk({
  projectId,
  disk,
  onClose,
}: {
  projectId: string
  disk: Disk
  onClose: () => void
}) {
  const vms = useQuery(readAll('vmList', { project_id: projectId, locations: disk.location }))
  const [vmId, setVmId] = useState('')
  const usable = (vms.data ?? []).filter((vm) => mayAttach(disk, vm) && vmDiskChangeStates.includes(vm.state))
  const vm = usable.find(({ id }) => id === vmId) ?? onlyOne(usable)
  const kind = disk.type === 'shared-volume' ? 'whole-host VM' : 'VM'
  const waiting = vms.data ? '' : vms.error ? 'The VMs could not be loaded' : 'Loading VMs…'
  const whyNone =
    waiting || (usable.length > 0 ? 'Choose a VM' : `No running or stopped ${kind} in ${disk.location}`)
  return (
    <AttachDialog
      projectId={projectId}
      title={`Attach disk ${disk.name}`}
      vm={vm}
      disk={disk}
      reason={vm ? undefined : whyNone}
      onClose={onClose}
    >
      <VmField
        label="VM"
        vms={usable}
        value={vm?.id ?? vmId}
        onChange={setVmId}
        autoFocus
        choices={choicesFrom(
          usable.map(({ id, name, type }) => ({ value: id, label: `${name} (${type})` })),
          whyNone,
        )}
        hint={`Choose a running or stopped ${kind} in ${disk.location}.`}
      />
    </AttachDialog>
  )
}

/** Preselects only what is not a choice, because a VM or disk that was not chosen could be the wrong one. */
const onlyOne = <Item,>(items: Item[]): Item | undefined => (items.length === 1 ? items[0] : undefined)

/** Adds an empty choice with a text, unless there is only one choice. */
const choicesFrom = (choices: { value: string; label: string }[], text: string) =>
  choices.length === 1 ? choices : [{ value: '', label: text }, ...choices]

interface AttachDialogProps {
  projectId: string
  title: string
  vm: Vm | undefined
  disk: Disk | undefined
  reason: string | undefined
  onClose: () => void
  children: ReactNode
}

const attachment = ({ id }: Disk, mode: Mode) => ({
  attach_disks: [{ disk_id: id, attachment_type: 'data' as const, mode }],
})

/** Attaches the disk to the VM, then shows the commands that mount it. */
function AttachDialog({ projectId, title, vm, disk, reason, onClose, children }: AttachDialogProps) {
  const [wanted, setWanted] = useState<Mode>('read-write')
  const [attached, setAttached] = useState<Disk | null>(null)
  const mustBeReadOnly = disk?.type === 'persistent-ssd' && disk.attached_to.length > 0
  const mode = mustBeReadOnly ? 'read-only' : wanted
  const attach = useOperation({
    projectId,
    run: (on: { vm: Vm; disk: Disk }) =>
      client.vmAttachDisks({ project_id: projectId, vm_id: on.vm.id }, attachment(on.disk, mode)),
    done: (on) => `Attached ${on.disk.name} to ${on.vm.name}`,
    failed: (on) => `Could not attach ${on.disk.name}`,
    invalidates: ['vmGet', 'vmList', 'diskList'],
    showsErrors: true,
  })
  if (attached) return <MountDialog disk={{ ...attached, mode }} onClose={onClose} />
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={title}
      action="Attach disk"
      isBusy={attach.isPending}
      error={attach.error}
      reason={reason}
      onSubmit={() => vm && disk && attach.mutate({ vm, disk }, { onSuccess: () => setAttached(disk) })}
      commands={
        vm &&
        disk &&
        projectCommands(projectId, {
          cli: `slipway disk attach ${shellQuote(disk.name)} ${shellQuote(vm.name)}${mode === 'read-only' ? ' --read-only' : ''}`,
          path: `/vms/${vm.id}/attach-disks`,
          body: attachment(disk, mode),
        })
      }
    >
      {children}
      <SelectField
        label="Mode"
        value={mode}
        onChange={(value) => setWanted(value as Mode)}
        choices={[
          { value: 'read-write', label: 'Read and write', isOff: mustBeReadOnly },
          { value: 'read-only', label: 'Read only' },
        ]}
        hint={
          disk?.type === 'persistent-ssd'
            ? 'A disk can be attached to several VMs at the same time only if it is read-only on all of them.'
            : undefined
        }
      />
    </FormDialog>
  )
}

/** Shows the commands that mount an attached disk in the VM. */
export function MountDialog({
  disk,
  onClose,
}: {
  disk: Parameters<typeof mountCommands>[0]
  onClose: () => void
}) {
  return (
    <Dialog isOpen onClose={onClose} title={`Mount ${disk.name} in the VM`} isWide>
      <p className="mb-3 text-ink-muted">
        {disk.type === 'shared-volume'
          ? 'The volume already has a file system. Run this in the VM:'
          : 'Run this in the VM. It formats only empty disks.'}
      </p>
      <CommandTabs label="Commands to run in the VM" lines={[['Shell', mountCommands(disk)]]} />
      <div className="mt-5 flex justify-end">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  )
}

function mayAttach(disk: Disk, vm: Vm): boolean {
  if (disk.state !== 'available' || disk.attached_to.some(({ vm_id }) => vm_id === vm.id)) return false
  if (disk.type === 'shared-volume') return vmType(vm.type)?.isWholeHost ?? false
  return disk.attached_to.every(({ mode }) => mode === 'read-only')
}
