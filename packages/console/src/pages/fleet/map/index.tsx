import { type Family, familyNames, familyOfModel, type Host, type RouteResponse } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { memo, useMemo } from 'react'
import { read, readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { GpuCells, GpuHints, gpuStyles } from '../../../features/fleet/gpu-cells.tsx'
import { hostOrder } from '../../../features/fleet/host-order.ts'
import { acceptsVms, hostState } from '../../../features/fleet/host-states.ts'
import { fleetPollMs } from '../../../features/fleet/poll.ts'
import { FleetPage } from '../../../features/page-tabs.tsx'
import { curlCommand } from '../../../lib/shell.ts'
import { stateWord } from '../../../lib/states.ts'
import { useSearchState } from '../../../lib/use-search-state.ts'
import { Select } from '../../../ui/field.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { Empty } from '../../../ui/page.tsx'
import { StateBadge } from '../../../ui/state.tsx'
import { RegisterHost } from './register-host.tsx'

/** A map of the fleet: a band for each location, a tile for each host, a cell for each GPU. */
export function FleetMap() {
  const hosts = useQuery({ ...readAll('adminHostList', {}), refetchInterval: fleetPollMs })
  const capacity = useQuery({ ...read('adminCapacityList', {}), refetchInterval: fleetPollMs })
  const [search, setSearch] = useSearchState()
  const bands = useMemo(() => {
    const byName = hostOrder(capacity.data?.items ?? [])
    const inOrder = (hosts.data ?? [])
      .filter((host) => fits(host, search))
      .toSorted((one, other) =>
        search.sort === 'free' ? freeOn(other) - freeOn(one) || byName(one, other) : byName(one, other),
      )
    return group(inOrder, search.family ?? '')
  }, [hosts.data, capacity.data, search])
  const isDense = countHosts(bands) > maxLargeTiles
  return (
    <FleetPage actions={<RegisterHost />}>
      <Loaded query={hosts} rows={10}>
        {(data) => (
          <>
            <div className="filter-bar">
              <Select
                isSmall
                label="Family"
                value={search.family ?? ''}
                onChange={(family) => setSearch({ family })}
                choices={[
                  { value: '', label: 'Any family' },
                  ...familyNames.map((value) => ({ value, label: value })),
                ]}
              />
              <Select
                isSmall
                label="Free GPUs"
                value={search.free ?? ''}
                onChange={(free) => setSearch({ free })}
                choices={[
                  { value: '', label: 'Any number free' },
                  ...freeChoices.map((min) => ({ value: String(min), label: `${min} or more free` })),
                ]}
              />
              <Select
                isSmall
                label="Host state"
                value={search.state ?? ''}
                onChange={(state) => setSearch({ state })}
                choices={[
                  { value: '', label: 'Any state' },
                  ...hostStates.map((state) => ({ value: state, label: stateWord(state) })),
                ]}
              />
              <Select
                isSmall
                label="Sort hosts"
                value={search.sort ?? ''}
                onChange={(sort) => setSearch({ sort })}
                choices={[
                  { value: '', label: 'By name' },
                  { value: 'free', label: 'By free GPUs' },
                ]}
              />
              <Legend />
            </div>
            {data.length > 0 && bands.length === 0 && (
              <p className="card px-4 py-3 text-ink-muted">No hosts match the filters.</p>
            )}
            <Loaded query={capacity} rows={10}>
              {({ items }) => (
                <GpuHints>
                  {bands.map((band) => (
                    <LocationBand key={band.location} band={band} capacity={items} isDense={isDense} />
                  ))}
                </GpuHints>
              )}
            </Loaded>
            {data.length === 0 && (
              <Empty
                title="No hosts yet"
                action={<RegisterHost />}
                cli="slipway admin host create gpu-host-1 --location us-east1-a"
                curl={curlCommand('POST', '/v0.1/admin/hosts', {
                  name: 'gpu-host-1',
                  location: 'us-east1-a',
                })}
              >
                A host belongs to a location that is defined in the server’s slipway.toml. Its GPUs appear
                after its first report.
              </Empty>
            )}
          </>
        )}
      </Loaded>
    </FleetPage>
  )
}

/** With more hosts than this, tiles are small, so that 400 fit on one screen. */
const maxLargeTiles = 96

const freeChoices = [1, 2, 4, 8]
const hostStates = ['up', 'cordoned', 'draining', 'drained', 'down']

/** A host that accepts no VMs has no free GPUs. */
const freeOn = (host: Host): number =>
  acceptsVms(host) ? host.gpus.filter(({ state }) => state === 'free').length : 0

const fits = (host: Host, { free, state }: Record<string, string>): boolean =>
  freeOn(host) >= Number(free ?? 0) && (!state || hostState(host) === state)

type Band = ReturnType<typeof group>[number]
type FamilyCapacity = RouteResponse<'adminCapacityList'>['items'][number]

interface LocationBandProps {
  band: Band
  capacity: FamilyCapacity[]
  isDense: boolean
}

function LocationBand({ band, capacity, isDense }: LocationBandProps) {
  return (
    <section aria-label={band.location} className="card">
      <h2 className="border-b border-line px-4 py-2 text-lg font-semibold">{band.location}</h2>
      {band.families.map(({ family, hosts }) => {
        const facts = capacity.find((item) => item.location === band.location && item.family === family)
        return (
          <div key={family} className="border-b border-line px-4 py-3 last:border-b-0">
            <div className="mb-2 flex flex-wrap items-baseline gap-x-4 text-sm text-ink-muted">
              <span className="text-base font-medium text-ink">{family}</span>
              {facts && (
                <>
                  <span className="figures">
                    {facts.free} of {facts.total} GPUs free
                    {facts.unavailable > 0 && `, ${facts.unavailable} unavailable`}
                  </span>
                  <span>
                    largest available type:{' '}
                    {facts.largest_type ? (
                      <span className="text-ink">{facts.largest_type}</span>
                    ) : (
                      <span className="text-amber-text">none</span>
                    )}
                  </span>
                </>
              )}
            </div>
            <div
              className={`grid ${isDense ? 'grid-cols-[repeat(auto-fill,minmax(64px,1fr))] gap-1' : 'grid-cols-[repeat(auto-fill,minmax(156px,1fr))] gap-2 md:grid-cols-[repeat(auto-fill,minmax(190px,1fr))]'}`}
            >
              {hosts.map((host) => (
                <HostTile key={host.id} host={host} isDense={isDense} />
              ))}
            </div>
          </div>
        )
      })}
    </section>
  )
}

function group(hosts: Host[], wanted: string) {
  const familyOf = (host: Host): Family | 'other' => familyOfModel(host.gpus[0]?.model ?? '') ?? 'other'
  const locations = [...new Set(hosts.map(({ location }) => location))]
  const bands = locations.map((location) => ({
    location,
    families: [...familyNames, 'other' as const]
      .filter((family) => wanted === '' || family === wanted)
      .map((family) => ({
        family,
        hosts: hosts.filter((host) => host.location === location && familyOf(host) === family),
      }))
      .filter((each) => each.hosts.length > 0),
  }))
  return bands.filter(({ families }) => families.length > 0)
}

const countHosts = (bands: Band[]): number =>
  bands.reduce((sum, { families }) => sum + families.reduce((all, { hosts }) => all + hosts.length, 0), 0)

function Legend() {
  return (
    <div className="flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-muted md:ml-2">
      {Object.entries(gpuStyles).map(([state, style]) => (
        <span key={state} className="inline-flex items-center gap-1.5">
          <span className={`size-3 rounded-[2px] border ${style}`} />
          {stateWord(state)}
        </span>
      ))}
    </div>
  )
}

/** Small tiles have no badge; the border color shows the state. */
const denseFrames: Record<string, string> = { up: 'border-line', down: 'border-red' }

/** Memoized, because the map polls and can have hundreds of hosts. */
const HostTile = memo(function HostTile({ host, isDense }: { host: Host; isDense: boolean }) {
  const state = hostState(host)
  if (isDense)
    return (
      <Link
        to="/fleet/hosts/$hostId"
        params={{ hostId: host.id }}
        aria-label={state === 'up' ? host.name : `${host.name}, ${stateWord(state)}`}
        className={`rounded-[4px] border p-[3px] [contain-intrinsic-size:auto_20px] [content-visibility:auto] hover:border-ink-muted ${denseFrames[state] ?? 'border-amber'}`}
      >
        <GpuCells host={host} isDense />
      </Link>
    )
  return (
    <Link
      to="/fleet/hosts/$hostId"
      params={{ hostId: host.id }}
      className="flex flex-col gap-1.5 rounded-md border border-line p-2 [contain-intrinsic-size:auto_62px] [content-visibility:auto] hover:border-line-strong"
    >
      <span className="flex min-h-5 items-center justify-between gap-2 text-sm">
        <span className="truncate font-medium">{host.name}</span>
        {state !== 'up' && <StateBadge state={state} />}
      </span>
      <GpuCells host={host} />
    </Link>
  )
})
