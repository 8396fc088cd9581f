import type { VmCreate } from '@slipway/sdk'
import { useNavigate } from '@tanstack/react-router'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProjectId } from '../../api/me.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorState } from '../../ui/error.tsx'

/** Shown if the type is out of stock: the VM is created when its turn comes. */
export function WaitForCapacity({ request, reason }: { request: VmCreate; reason: string | undefined }) {
  const projectId = useProjectId()
  const navigate = useNavigate()
  const wait = useAction({
    run: (vm: VmCreate) => client.capacityRequestCreate({ project_id: projectId }, { vm }),
    done: (vm) => `${vm.name} waits for ${vm.type}`,
    invalidates: ['capacityRequestList'],
    showsErrors: true,
  })
  return (
    <div className="card flex flex-col items-start gap-3 p-4">
      <p className="text-ink-muted">
        {request.type} is out of stock in {request.location}. Wait in turn for free GPUs: the VM is created by
        itself. Waiting costs nothing. The queue shows your position and an estimate.
      </p>
      {wait.error && <ErrorState error={wait.error} onRetry={() => wait.mutate(request)} />}
      <Button
        reason={reason || undefined}
        isBusy={wait.isPending}
        onClick={() =>
          wait.mutate(request, {
            onSuccess: () => void navigate({ to: '/projects/$projectId/queue', params: { projectId } }),
          })
        }
      >
        Wait for capacity
      </Button>
    </div>
  )
}
