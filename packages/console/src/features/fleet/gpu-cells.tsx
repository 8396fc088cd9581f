import { Tooltip } from '@base-ui/react/tooltip'
import type { Gpu, Host, HostVm } from '@slipway/sdk'
import { type ReactNode, useState } from 'react'
import { stateWord } from '../../lib/states.ts'
import { gpuState } from './host-states.ts'

type CellState = ReturnType<typeof gpuState>

export const gpuStyles: Record<CellState, string> = {
  free: 'border-green bg-green/15',
  unavailable: 'border-line-strong bg-sunken',
  claimed: 'border-grey bg-grey',
  held: 'border-blue bg-blue/20',
  quarantined: 'border-amber bg-amber/40',
  gone: 'border-red border-dashed bg-transparent',
}

export const tenantOf = (vm: HostVm): string => `${vm.organization_name} / ${vm.project_name}`

/** Draws the GPUs of a host, grouped by NUMA node. */
export function GpuCells({ host, isDense = false }: { host: Host; isDense?: boolean }) {
  const { gpus, vms } = host
  const nodes = [...new Set(gpus.map(({ numa_node }) => numa_node))].sort((a, b) => a - b)
  return (
    <span className={`flex ${isDense ? 'gap-1' : 'gap-2'}`}>
      {nodes.map((node) => (
        <span key={node} className={`flex flex-1 ${isDense ? 'gap-px' : 'gap-0.5'}`}>
          {gpus
            .filter(({ numa_node }) => numa_node === node)
            .sort((a, b) => a.pci_address.localeCompare(b.pci_address))
            .map((gpu) => (
              <Cell
                key={gpu.id}
                gpu={gpu}
                host={host.name}
                isDense={isDense}
                state={gpuState(gpu, host)}
                vm={vms.find(({ id }) => id === gpu.vm_id)}
              />
            ))}
        </span>
      ))}
    </span>
  )
}

interface CellProps {
  gpu: Gpu
  host: string
  state: CellState
  vm: HostVm | undefined
  isDense: boolean
}

function Cell({ gpu, host, state, vm, isDense }: CellProps) {
  const position = `GPU ${gpu.pci_address}, NUMA node ${gpu.numa_node}`
  const holder = vm ? vm.name : gpu.vm_id ? 'a deleted VM' : ''
  return (
    <span
      role="img"
      aria-label={[stateWord(state), holder, vm && tenantOf(vm), position].filter(Boolean).join(', ')}
      data-gpu={position}
      data-host={host}
      data-state={stateWord(state)}
      data-vm={holder}
      data-tenant={vm ? tenantOf(vm) : ''}
      className={`flex-1 border ${isDense ? 'h-3 min-w-[3px] rounded-[1px]' : 'h-5 min-w-2 rounded-[2px]'} ${gpuStyles[state]}`}
    />
  )
}

/** One tooltip for thousands of cells, shown at the cell under the pointer. */
export function GpuHints({ children }: { children: ReactNode }) {
  const [cell, setCell] = useState<HTMLElement | null>(null)
  const { gpu, host, state, vm, tenant } = cell?.dataset ?? {}
  return (
    <div
      className="flex flex-col gap-4"
      onPointerOver={({ target }) => setCell((target as Element).closest<HTMLElement>('[data-gpu]'))}
      onPointerLeave={() => setCell(null)}
    >
      {children}
      <Tooltip.Root open={cell !== null}>
        <Tooltip.Portal>
          <Tooltip.Positioner anchor={cell} align="start" sideOffset={6} className="pointer-events-none z-60">
            <Tooltip.Popup className="rounded-md border border-line-strong bg-surface px-3 py-2 text-sm shadow-float">
              {vm ? <p className="font-medium">{vm}</p> : <p className="font-medium">{state}</p>}
              {tenant && <p>{tenant}</p>}
              <p className="text-ink-muted">
                {host}: {gpu}
                {vm && state !== stateWord('claimed') && `, ${state}`}
              </p>
            </Tooltip.Popup>
          </Tooltip.Positioner>
        </Tooltip.Portal>
      </Tooltip.Root>
    </div>
  )
}
