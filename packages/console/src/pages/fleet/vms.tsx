import type { RouteResponse } from '@slipway/sdk'
import { vmActions } from '@slipway/sdk'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { client } from '../../api/client.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { useStuck } from '../../features/alerts.tsx'
import { tenantOf } from '../../features/fleet/gpu-cells.tsx'
import { HostOfVm } from '../../features/fleet/host-link.tsx'
import { TenantVmLink } from '../../features/fleet/tenant-vm-link.tsx'
import { VmQuestion } from '../../features/fleet/vm-question.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { count } from '../../lib/format.ts'
import { stateWord } from '../../lib/states.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { FilterInput, Select } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { NoBreak } from '../../ui/no-break.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'

type Row = RouteResponse<'adminVmList'>['items'][number]

const pageSize = 500

/** The VMs of all tenants, newest first. The filter also finds VMs that are not loaded yet. */
export function FleetVms() {
  const [search, setSearch] = useSearchState()
  const { q = '', state = '', organization = '' } = search
  const organizations = useQuery({ ...readAll('adminOrganizationList', {}), staleTime: 60_000 })
  const vms = useInfiniteQuery({
    queryKey: ['adminVmList', { organization }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.adminVmList(
        {
          limit: pageSize,
          page_token: pageParam || undefined,
          organization_id: organization || undefined,
        },
        { signal },
      ),
    getNextPageParam: (page) => page.next_page_token || undefined,
    // Each read is recorded in the audit log of every tenant shown, so the list does not poll.
    refetchInterval: false,
    placeholderData: keepPreviousData,
  })
  const shown = useMemo(() => vms.data?.pages.flatMap(({ items }) => items) ?? [], [vms.data])
  const found = useSearchResults(q, shown, vms.hasNextPage)
  const rows = useMemo(
    () =>
      [...shown, ...found].filter(
        (vm) =>
          (!state || stateWord(vm.state) === state) &&
          (!organization || vm.organization_id === organization) &&
          `${vm.name} ${vm.id} ${tenantOf(vm)}`.toLowerCase().includes(q.toLowerCase()),
      ),
    [shown, found, q, state, organization],
  )
  const [asked, setAsked] = useState<{ vm: Row; what: 'stop' | 'delete' } | null>(null)
  const stuck = useStuck()
  const columns = useMemo(
    () => [...columnsFor(stuck), actions((what, vm) => setAsked({ vm, what }))],
    [stuck],
  )
  const states = [...new Set([...shown.map((vm) => stateWord(vm.state)), ...(state ? [state] : [])])].sort()
  return (
    <FleetPage>
      <div className="filter-bar">
        <FilterInput label="Filter by name, tenant or ID" value={q} onChange={(q) => setSearch({ q })} />
        <Select
          isSmall
          label="State"
          value={state}
          onChange={(state) => setSearch({ state })}
          choices={[{ value: '', label: 'Any state' }, ...states.map((value) => ({ value, label: value }))]}
        />
        <Select
          isSmall
          label="Organization"
          value={organization}
          onChange={(organization) => setSearch({ organization })}
          choices={[
            { value: '', label: 'Any organization' },
            ...(organizations.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
          ]}
        />
        <span className="figures ml-auto text-ink-muted">
          {/* The search also finds VMs that are older than those shown. */}
          {!vms.hasNextPage || found.length > 0
            ? `Showing ${count(rows.length)}`
            : q || state
              ? `${count(rows.length)} of the newest ${count(shown.length)}`
              : `Showing the newest ${count(rows.length)}`}
        </span>
      </div>
      <Loaded query={vms}>
        {() => (
          <Table
            label="VMs of all tenants"
            rows={rows}
            columns={columns}
            rowKey={(vm) => vm.id}
            sort={search.sort ?? ''}
            onSort={(sort) => setSearch({ sort })}
            empty={
              <p className="card px-4 py-3 text-ink-muted">
                {shown.length === 0 && !q ? 'No VMs yet.' : 'No VMs match the filters.'}
              </p>
            }
          />
        )}
      </Loaded>
      {vms.hasNextPage && (
        <div>
          <Button isBusy={vms.isFetchingNextPage} onClick={() => vms.fetchNextPage()}>
            Show older VMs
          </Button>
        </div>
      )}
      {asked && <VmQuestion {...asked} onClose={() => setAsked(null)} />}
    </FleetPage>
  )
}

/** Finds VMs that the page has not loaded, by name, ID or address. */
function useSearchResults(q: string, shown: Row[], hasMore: boolean): Row[] {
  const results = useQuery({
    ...read('adminSearch', { query: { q } }),
    enabled: hasMore && q.length >= 2,
    placeholderData: keepPreviousData,
  })
  const known = new Set(shown.map(({ id }) => id))
  const ids = (results.data?.items ?? [])
    .filter(({ resource_type, resource_id }) => resource_type === 'vm' && !known.has(resource_id))
    .map(({ resource_id }) => resource_id)
  const found = useQuery({
    ...read('adminVmList', { query: { ids: ids.join(',') } }),
    enabled: q.length >= 2 && ids.length > 0,
    placeholderData: keepPreviousData,
  })
  return (q.length >= 2 && found.data?.items.filter(({ id }) => !known.has(id))) || none
}

const none: Row[] = []

const columnsFor = (stuck: ReadonlyMap<string, string>): Column<Row>[] => [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(130px, 2fr)',
    sortBy: (vm) => vm.name,
    cell: (vm) => <TenantVmLink vm={vm} />,
  },
  {
    key: 'state',
    title: 'State',
    width: '124px',
    sortBy: (vm) => stateWord(vm.state),
    cell: (vm) => <StateBadge state={stuck.has(vm.id) ? 'stuck' : vm.state} />,
  },
  {
    key: 'type',
    title: 'Type',
    width: '124px',
    sortBy: (vm) => vm.type,
    cell: (vm) => <NoBreak>{vm.type}</NoBreak>,
  },
  {
    key: 'tenant',
    title: 'Organization / project',
    width: 'minmax(176px, 1.4fr)',
    isFoldable: true,
    sortBy: tenantOf,
    cell: tenantOf,
  },
  {
    key: 'host',
    title: 'Host and location',
    width: 'minmax(170px, 1.2fr)',
    isFoldable: true,
    sortBy: (vm) => vm.location,
    cell: (vm) => <HostOfVm vm={vm} hasLocation />,
  },
  ageColumn,
]

const actions = (ask: (what: 'stop' | 'delete', vm: Row) => void): Column<Row> =>
  actionColumn('140px', (vm) => (
    <>
      <Button
        size="small"
        reason={vmActions.STOP.from.includes(vm.state) ? undefined : `The VM is ${stateWord(vm.state)}.`}
        onClick={() => ask('stop', vm)}
      >
        Stop
      </Button>
      <Button
        size="small"
        kind="danger"
        reason={vm.state === 'STATE_DELETING' ? 'The VM is being deleted.' : undefined}
        onClick={() => ask('delete', vm)}
      >
        Delete
      </Button>
    </>
  ))
