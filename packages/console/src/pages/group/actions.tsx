import { type InstanceGroup, isApiError, maxGroupMembers, type Vm, vmType } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useWhyNot } from '../../api/me.ts'
import { usePriceOf } from '../../api/prices.ts'
import { protectionReason } from '../../features/annotations.tsx'
import { ActionEffects } from '../../features/vm-actions.tsx'
import { reservedAddressOf } from '../../lib/addresses.ts'
import { dataDisksOf } from '../../lib/disks.ts'
import { plural, usd } from '../../lib/format.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog, submitProps } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'

interface GroupProps {
  group: InstanceGroup
  /** The members of the group. */
  vms: Vm[]
}

const changedRoutes = ['instanceGroupGet', 'instanceGroupList', 'vmList', 'quotaList'] as const
const targetOf = ({ project_id, id }: InstanceGroup) => ({ project_id, instance_group_id: id })

/** Returns why an action on all members is not possible; undefined if it is. */
export function whyNotNow({ state, members }: InstanceGroup, action: 'start' | 'stop' | 'resize') {
  if (state === 'UPDATING' || state === 'DELETING') return 'Another operation is in progress.'
  const isIn = (wanted: string) => members.some((member) => member.state === wanted)
  if (action === 'start' && !isIn('STATE_SHUTOFF')) return 'No VM in the group is stopped.'
  if (action === 'stop' && !isIn('STATE_RUNNING') && !isIn('STATE_CRASHED'))
    return 'No VM in the group is running.'
  return undefined
}

/** Starts, stops, resizes and deletes the group as a whole. */
export function GroupActions({ group, vms }: GroupProps) {
  const [open, setOpen] = useState<'stop' | 'resize' | 'delete' | ''>('')
  const whyNot = useWhyNot('member')
  const start = useOperation({
    projectId: group.project_id,
    run: () => client.instanceGroupStart(targetOf(group)),
    done: () => `Started ${group.name}`,
    failed: () => `Could not start ${group.name}`,
    invalidates: [...changedRoutes],
  })
  const close = () => setOpen('')
  return (
    <>
      <Button
        icon={<Icon name="play" size={14} />}
        reason={whyNot ?? whyNotNow(group, 'start')}
        isBusy={start.isPending}
        onClick={() => start.mutate(undefined)}
      >
        Start
      </Button>
      <Button
        icon={<Icon name="square" size={14} />}
        reason={whyNot ?? whyNotNow(group, 'stop')}
        onClick={() => setOpen('stop')}
      >
        Stop
      </Button>
      <Button reason={whyNot ?? whyNotNow(group, 'resize')} onClick={() => setOpen('resize')}>
        Resize
      </Button>
      <Button
        kind="danger"
        icon={<Icon name="trash" size={14} />}
        aria-label="Delete group"
        reason={
          whyNot ??
          (group.state === 'DELETING' ? 'The group is being deleted.' : undefined) ??
          protectionReason(group)
        }
        onClick={() => setOpen('delete')}
      >
        Delete
      </Button>
      {open === 'stop' && <StopDialog group={group} vms={vms} onClose={close} />}
      {open === 'resize' && <ResizeDialog group={group} vms={vms} onClose={close} />}
      {open === 'delete' && <DeleteDialog group={group} vms={vms} onClose={close} />}
    </>
  )
}

type DialogProps = GroupProps & { onClose: () => void }

function StopDialog({ group, vms, onClose }: DialogProps) {
  const stop = useOperation({
    projectId: group.project_id,
    run: () => client.instanceGroupStop(targetOf(group)),
    done: () => `Stopped ${group.name}`,
    failed: () => `Could not stop ${group.name}`,
    invalidates: [...changedRoutes],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Stop group ${group.name}`}
      action={`Stop ${plural(vms.length, 'VM')}`}
      commands={projectCommands(group.project_id, {
        cli: `slipway group stop ${shellQuote(group.name)}`,
        path: `/instance-groups/${group.id}/stop`,
      })}
      {...submitProps(stop, undefined, onClose)}
    >
      <ActionEffects action="STOP" vms={vms} />
    </Confirm>
  )
}

function ResizeDialog({ group, vms, onClose }: DialogProps) {
  const [text, setText] = useState(String(group.desired_count))
  const count = Number(text)
  const resize = useOperation({
    projectId: group.project_id,
    run: () => client.instanceGroupUpdate(targetOf(group), { desired_count: count }),
    done: () => `Resized ${group.name} to ${plural(count, 'VM')}`,
    failed: () => `Could not resize ${group.name}`,
    invalidates: [...changedRoutes],
    showsErrors: true,
  })
  const price = usePriceOf(group.project_id)(vms[0]?.type ?? '')
  const priceText = price === undefined ? '' : `, ${usd(group.desired_count * price)}/h`
  const isValid = text !== '' && Number.isInteger(count) && count >= 0 && count <= maxGroupMembers
  const problem = isValid ? '' : `Enter a number from 0 to ${maxGroupMembers}.`
  const fits = isApiError(resize.error) ? resize.error.fits : undefined
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Resize group ${group.name}`}
      action="Resize group"
      kind={isValid && count < group.desired_count ? 'danger' : 'primary'}
      {...submitProps(resize, undefined, onClose)}
      reason={problem || (count === group.desired_count ? 'Enter a different number' : undefined)}
      commands={projectCommands(group.project_id, {
        cli: `slipway group resize ${shellQuote(group.name)} --count ${count}`,
        method: 'PATCH',
        path: `/instance-groups/${group.id}`,
        body: { desired_count: count },
        terraform: 'instance_group',
        changes: group.name,
      })}
    >
      <TextField
        label="Number of VMs"
        type="number"
        min={0}
        max={maxGroupMembers}
        value={text}
        onChange={(value) => {
          resize.reset()
          setText(value)
        }}
        problem={problem}
        hint={`Currently ${plural(group.desired_count, 'VM')}${priceText}. At most ${maxGroupMembers}.`}
      />
      {isValid && <ResizeEffects group={group} vms={vms} count={count} />}
      {fits !== undefined && fits > 0 && (
        <div>
          <Button
            size="small"
            onClick={() => {
              resize.reset()
              setText(String(group.desired_count + fits))
            }}
          >
            Use {group.desired_count + fits}
          </Button>
        </div>
      )}
    </FormDialog>
  )
}

/** Shows which members will be deleted, or what the new members will cost. */
function ResizeEffects({ group, vms, count }: GroupProps & { count: number }) {
  const usdPerHour = usePriceOf(group.project_id)
  const difference = count - group.desired_count
  if (difference === 0) return null
  if (difference < 0) {
    const names = group.members.slice(difference).map(({ name }) => name)
    return (
      <p className="text-ink-muted">
        <b className="font-medium text-ink">Will be deleted:</b> {names.join(', ')}, with their OS disks. Data
        disks will be kept.
      </p>
    )
  }
  const type = vmType(vms[0]?.type ?? '')
  const price = type && usdPerHour(type.name)
  return (
    <p className="text-ink-muted">
      {plural(difference, 'VM')} will be added, all or none
      {price !== undefined && (
        <>
          : <b className="figures font-medium text-ink">{usd(difference * price)}/h</b> more
        </>
      )}
      .
    </p>
  )
}

function DeleteDialog({ group, vms, onClose }: DialogProps) {
  const [deletesDisks, setDeletesDisks] = useState(false)
  const remove = useOperation({
    projectId: group.project_id,
    run: () => client.instanceGroupDelete({ ...targetOf(group), delete_disks: deletesDisks }),
    done: () => `Deleted ${group.name}`,
    failed: () => `Could not delete ${group.name}`,
    invalidates: [...changedRoutes],
    showsErrors: true,
  })
  const hasDataDisks = dataDisksOf(vms).length > 0
  const hasScratch = vms.some(({ scratch_gb }) => scratch_gb > 0)
  const kept = [
    ...(hasDataDisks ? [deletesDisks ? 'data disks that were attached later' : 'all data disks'] : []),
    ...(vms.some((vm) => reservedAddressOf(vm) !== '') ? ['reserved addresses'] : []),
  ]
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete group ${group.name}`}
      action="Delete group"
      {...submitProps(remove, undefined, onClose)}
      nameToType={group.name}
      commands={projectCommands(group.project_id, {
        cli: `slipway group delete ${shellQuote(group.name)}${deletesDisks ? ' --delete-disks' : ''}`,
        method: 'DELETE',
        path: `/instance-groups/${group.id}${deletesDisks ? '?delete_disks=true' : ''}`,
      })}
    >
      <p>
        <b className="font-medium text-ink">Will be deleted:</b> the group and its{' '}
        {plural(group.members.length, 'VM')}, with their OS disks
        {hasScratch && ', local scratch data'} and unreserved addresses.
      </p>
      <p className="mt-1">
        <b className="font-medium text-ink">Will be kept:</b>{' '}
        {kept.length === 0 ? 'nothing. The VMs have no data disks.' : `${kept.join(' and ')}.`}
      </p>
      {hasDataDisks && (
        <div className="mt-3 text-ink">
          <CheckField
            label="Also delete the disks that were created with the VMs"
            isChecked={deletesDisks}
            onChange={setDeletesDisks}
          />
        </div>
      )}
    </Confirm>
  )
}
