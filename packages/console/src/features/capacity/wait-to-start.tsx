import type { ApiError, Vm } from '@slipway/sdk'
import { useNavigate } from '@tanstack/react-router'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { QueueEstimate } from './queue-estimate.tsx'

interface WaitToStartProps {
  vm: Vm
  /** The error of the start request. */
  error: ApiError
  onClose: () => void
}

/** Shown when a stopped VM cannot start because its type is out of stock. */
export function WaitToStart({ vm, error, onClose }: WaitToStartProps) {
  const navigate = useNavigate()
  const params = { projectId: vm.project_id }
  const wait = useAction({
    run: () => client.capacityRequestCreate({ project_id: vm.project_id }, { start_vm_id: vm.id }),
    done: () => `${vm.name} is waiting for ${vm.type}`,
    invalidates: ['capacityRequestList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`${vm.type} is out of stock`}
      action="Wait for capacity"
      commands={projectCommands(vm.project_id, {
        cli: `slipway queue start ${shellQuote(vm.name)}`,
        path: '/capacity-requests',
        body: { start_vm_id: vm.id },
      })}
      {...submitProps(wait, undefined, () => void navigate({ to: '/projects/$projectId/queue', params }))}
    >
      <p className="text-ink-muted">
        {vm.name} cannot start in {vm.location} now. You can wait in the queue for up to 7 days. The VM starts
        when its turn comes. Waiting is free.
      </p>
      {error.queue && (
        <p>
          <QueueEstimate queue={error.queue} />
        </p>
      )}
    </FormDialog>
  )
}
