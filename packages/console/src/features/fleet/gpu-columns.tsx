import type { Gpu, Host } from '@slipway/sdk'
import { StateBadge } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { HostNameLink } from './host-link.tsx'

export interface GpuOfHost {
  host: Host
  gpu: Gpu
}

/** The columns of GPU tables: host, location, PCI address, model and state. */
export const gpuColumns: Column<GpuOfHost>[] = [
  {
    key: 'host',
    title: 'Host',
    width: 'minmax(140px, 1fr)',
    cell: ({ host }) => <HostNameLink id={host.id} name={host.name} />,
  },
  {
    key: 'location',
    title: 'Location',
    width: 'minmax(110px, 1fr)',
    isFoldable: true,
    cell: ({ host }) => host.location,
  },
  {
    key: 'pci',
    title: 'PCI address',
    width: '140px',
    isFoldable: true,
    cell: ({ gpu }) => <span className="mono">{gpu.pci_address}</span>,
  },
  {
    key: 'model',
    title: 'Model',
    width: 'minmax(130px, 1fr)',
    isFoldable: true,
    cell: ({ gpu }) => gpu.model,
  },
  {
    key: 'state',
    title: 'State',
    width: '140px',
    cell: ({ gpu }) => <StateBadge state={gpu.state} />,
  },
]
