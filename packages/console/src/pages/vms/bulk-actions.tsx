import { type Vm, type VmAction, vmActions } from '@slipway/sdk'
import { useState } from 'react'
import { invalidate } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { plural } from '../../lib/format.ts'
import { showToast } from '../../lib/toasts.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'

/** Stops or deletes the selected VMs. Each request can fail on its own. */
export function BulkActions({
  vms,
  projectId,
  whyNot,
  onDone,
}: {
  vms: Vm[]
  projectId: string
  whyNot: string | undefined
  onDone: () => void
}) {
  const [wanted, setWanted] = useState<'stop' | 'delete' | ''>('')
  const [isBusy, setBusy] = useState(false)
  const stoppable = vms.filter((vm) => vmActions['STOP' satisfies VmAction].from.includes(vm.state))
  const deletable = vms.filter((vm) => !vm.deletion_protection)
  const targets = wanted === 'stop' ? stoppable : deletable
  const verb = wanted === 'stop' ? 'Stop' : 'Delete'
  const run = async () => {
    setBusy(true)
    const results = await Promise.allSettled(
      targets.map(async (vm) => {
        const target = { project_id: projectId, vm_id: vm.id }
        const { operation } =
          wanted === 'stop'
            ? await client.vmUpdate(target, { action: 'STOP' })
            : await client.vmDelete(target)
        return () => client.wait({ project_id: projectId }, operation)
      }),
    )
    setBusy(false)
    setWanted('')
    onDone()
    await invalidate(['vmList'])
    const refused = results.filter((result) => result.status === 'rejected')
    if (refused[0])
      showToast({
        title: `Could not ${verb.toLowerCase()} ${plural(refused.length, 'VM')}`,
        error: refused[0].reason as Error,
      })
    const ends = await Promise.allSettled(
      results.flatMap((result) => (result.status === 'fulfilled' ? [result.value()] : [])),
    )
    const ended = ends.filter((end) => end.status === 'fulfilled').length
    const failed = ends.find((end) => end.status === 'rejected')
    if (ended > 0) showToast({ title: `${wanted === 'stop' ? 'Stopped' : 'Deleted'} ${plural(ended, 'VM')}` })
    if (failed)
      showToast({
        title: `Could not ${verb.toLowerCase()} ${plural(ends.length - ended, 'VM')}`,
        error: failed.reason as Error,
      })
  }
  return (
    <>
      <span className="figures font-medium">{plural(vms.length, 'VM')} selected</span>
      <Button
        size="small"
        icon={<Icon name="square" size={14} />}
        reason={whyNot ?? (stoppable.length === 0 ? 'None of the selected VMs is running' : undefined)}
        onClick={() => setWanted('stop')}
      >
        Stop
      </Button>
      <Button
        size="small"
        kind="danger"
        icon={<Icon name="trash" size={14} />}
        reason={whyNot ?? (deletable.length === 0 ? 'All selected VMs have deletion protection' : undefined)}
        onClick={() => setWanted('delete')}
      >
        Delete
      </Button>
      <Button size="small" kind="quiet" onClick={onDone}>
        Clear
      </Button>
      <Confirm
        isOpen={wanted !== ''}
        onClose={() => setWanted('')}
        title={`${verb} ${plural(targets.length, 'VM')}`}
        action={`${verb} ${plural(targets.length, 'VM')}`}
        isBusy={isBusy}
        error={null}
        onSubmit={run}
        nameToType={wanted === 'delete' && targets.length > 1 ? String(targets.length) : ''}
      >
        <p>
          {wanted === 'stop'
            ? 'GPUs are released and the VMs are no longer billed. Disks and addresses are kept.'
            : 'OS disks and addresses are permanently deleted. Data disks are kept.'}
          {wanted === 'delete' &&
            deletable.length < vms.length &&
            ` ${plural(vms.length - deletable.length, 'selected VM')} with deletion protection will be kept.`}
        </p>
        <p className="mono mt-2 max-h-40 overflow-y-auto text-ink">
          {targets.map((vm) => vm.name).join(', ')}
        </p>
      </Confirm>
    </>
  )
}
