import { type Family, familyNames, familyOfModel, type Gpu, type Host } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { shortId } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search.ts'
import { Select } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { FleetPage } from '../../ui/page-tabs.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { RegisterHost } from './register-host.tsx'

export const fleetPollMs = 2_000

/** Each location a band, each host a tile, each GPU a cell in its NUMA half. */
export function Fleet() {
  const hosts = useQuery({ ...readAll('adminHostList', {}), refetchInterval: fleetPollMs })
  const capacity = useQuery({ ...read('adminCapacityList', {}), refetchInterval: fleetPollMs })
  const [search, setSearch] = useSearchState()
  const bands = useMemo(() => group(hosts.data ?? [], search.family ?? ''), [hosts.data, search.family])
  return (
    <FleetPage actions={<RegisterHost />}>
      <Loaded query={hosts} rows={10}>
        {(data) => (
          <>
            <div className="flex flex-wrap items-center gap-4">
              <Select
                isSmall
                label="Family"
                value={search.family ?? ''}
                onChange={(family) => setSearch({ family })}
                choices={[
                  { value: '', label: 'Any GPU' },
                  ...familyNames.map((value) => ({ value, label: value })),
                ]}
              />
              <Legend />
            </div>
            {bands.map(({ location, families }) => (
              <section key={location} aria-label={location} className="card">
                <h2 className="border-b border-line px-4 py-2 text-lg font-semibold">{location}</h2>
                {families.map(({ family, hosts: tiles }) => {
                  const facts = capacity.data?.items.find(
                    (item) => item.location === location && item.family === family,
                  )
                  return (
                    <div key={family} className="border-b border-line px-4 py-3 last:border-b-0">
                      <div className="figures mb-2 flex flex-wrap items-baseline gap-x-4 text-sm text-ink-muted">
                        <span className="text-base font-medium text-ink">{family}</span>
                        {facts && (
                          <>
                            <span>
                              {facts.free} of {facts.total} GPUs free
                            </span>
                            <span>largest that fits: {facts.largest_type || 'none'}</span>
                          </>
                        )}
                      </div>
                      <div className="grid grid-cols-[repeat(auto-fill,minmax(210px,1fr))] gap-2">
                        {tiles.map((host) => (
                          <HostTile key={host.id} host={host} />
                        ))}
                      </div>
                    </div>
                  )
                })}
              </section>
            ))}
            {data.length === 0 && <p className="text-ink-muted">No host yet. Register one to begin.</p>}
          </>
        )}
      </Loaded>
    </FleetPage>
  )
}

function group(hosts: Host[], wanted: string) {
  const familyOf = (host: Host): Family | 'other' => familyOfModel(host.gpus[0]?.model ?? '') ?? 'other'
  const locations = [...new Set(hosts.map(({ location }) => location))].sort()
  return locations.map((location) => ({
    location,
    families: [...familyNames, 'other' as const]
      .filter((family) => wanted === '' || family === wanted)
      .map((family) => ({
        family,
        hosts: hosts
          .filter((host) => host.location === location && familyOf(host) === family)
          .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true })),
      }))
      .filter((each) => each.hosts.length > 0),
  }))
}

export const gpuLook: Record<Gpu['state'], string> = {
  free: 'border-green bg-green/15',
  claimed: 'border-blue bg-blue',
  quarantined: 'border-amber bg-amber/40',
  gone: 'border-red border-dashed bg-transparent',
}

function Legend() {
  const words: Record<Gpu['state'], string> = {
    free: 'free',
    claimed: 'held by a VM',
    quarantined: 'quarantined',
    gone: 'gone',
  }
  return (
    <div className="flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-muted">
      {Object.entries(words).map(([state, word]) => (
        <span key={state} className="inline-flex items-center gap-1.5">
          <span className={`size-3 rounded-[2px] border ${gpuLook[state as Gpu['state']]}`} />
          {word}
        </span>
      ))}
    </div>
  )
}

function HostTile({ host }: { host: Host }) {
  const isPlain = host.state === 'up' && host.schedulable
  return (
    <Link
      to="/fleet/hosts/$hostId"
      params={{ hostId: host.id }}
      className="flex flex-col gap-1.5 rounded-md border border-line p-2 hover:border-line-strong"
    >
      <span className="flex min-h-5 items-center justify-between gap-2 text-sm">
        <span className="truncate font-medium">{host.name}</span>
        {!isPlain && <StateBadge state={host.state === 'up' ? 'closed' : host.state} />}
      </span>
      <GpuCells gpus={host.gpus} />
    </Link>
  )
}

export function GpuCells({ gpus }: { gpus: Gpu[] }) {
  const nodes = [...new Set(gpus.map(({ numa_node }) => numa_node))].sort((a, b) => a - b)
  return (
    <span className="flex gap-2">
      {nodes.map((node) => (
        <span key={node} className="flex gap-0.5">
          {gpus
            .filter(({ numa_node }) => numa_node === node)
            .sort((a, b) => a.pci_address.localeCompare(b.pci_address))
            .map((gpu) => (
              <span
                key={gpu.id}
                role="img"
                aria-label={`GPU ${gpu.pci_address} ${gpu.state}`}
                title={`${gpu.pci_address} · NUMA ${gpu.numa_node} · ${gpu.state}${gpu.vm_id ? ` · VM …${shortId(gpu.vm_id)}` : ''}`}
                className={`h-5 w-4 rounded-[2px] border ${gpuLook[gpu.state]}`}
              />
            ))}
        </span>
      ))}
    </span>
  )
}
