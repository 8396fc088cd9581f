import type { Gpu } from '@slipway/sdk'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'

const reasons: Partial<Record<Gpu['state'], string>> = {
  claimed: 'A VM uses this GPU.',
  gone: 'The host no longer reports this GPU.',
}

/** Quarantines a GPU, so that no VM gets it, or ends the quarantine. */
export function GpuAction({ gpu }: { gpu: Gpu }) {
  const isQuarantined = gpu.state === 'quarantined'
  const change = useAction({
    run: () => client.adminGpuUpdate({ gpu_id: gpu.id }, { state: isQuarantined ? 'free' : 'quarantined' }),
    done: (_, { state }) =>
      state === 'free' ? `Released ${gpu.pci_address}` : `Quarantined ${gpu.pci_address}`,
    failed: () => `Could not change ${gpu.pci_address}`,
    about: gpu.id,
    invalidates: ['adminHostList', 'adminHostGet', 'adminCapacityList'],
  })
  return (
    <Button
      size="small"
      isBusy={change.isPending}
      reason={reasons[gpu.state]}
      onClick={() => change.mutate(undefined)}
    >
      {isQuarantined ? 'Release' : 'Quarantine'}
    </Button>
  )
}
