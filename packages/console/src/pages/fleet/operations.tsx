import type { RouteId } from '@slipway/sdk'
import { keepPreviousData, useInfiniteQuery, useQueries } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { invalidate } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { OperationLink } from '../../features/fleet/operation-link.tsx'
import { fleetPollMs, settingsPollMs } from '../../features/fleet/poll.ts'
import { projectText } from '../../features/fleet/project-picker.tsx'
import {
  AbandonDialog,
  type AdminOperation as Row,
  StuckActions,
} from '../../features/fleet/stuck-actions.tsx'
import { TenantVmLink } from '../../features/fleet/tenant-vm-link.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { count, shortId, stepText } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { Select } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'

const isListed = (rows: Row[], id: string) => rows.some(({ operation_id }) => operation_id === id)

/** Each read is recorded in the audit log of every tenant shown, so poll only while an operation runs. */
const pollWhileRunning = ({ state }: { state: { data?: Row | undefined } }) =>
  state.data?.state === 'IN_PROGRESS' && !state.data.is_stuck ? settingsPollMs : false

const alertLists: RouteId[] = ['adminAlertList', 'organizationAlertList']

export function FleetOperations() {
  const [search, setSearch] = useSearchState()
  const isOnlyStuck = search.show !== 'all'
  const operations = useInfiniteQuery({
    queryKey: ['adminOperationList', { isOnlyStuck }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.adminOperationList(
        { limit: 100, page_token: pageParam || undefined, ...(isOnlyStuck && { stuck: true }) },
        { signal },
      ),
    getNextPageParam: (page) => page.next_page_token || undefined,
    placeholderData: keepPreviousData,
    // Each read is recorded in the audit log of every tenant shown, so poll only while an operation runs.
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ items }) => items.some((row) => row.state === 'IN_PROGRESS' && !row.is_stuck))
        ? settingsPollMs
        : false,
  })
  // A new alert about a stuck operation triggers a refetch of the list.
  const alerts = useQuery({ ...read('adminAlertList', {}), refetchInterval: fleetPollMs })
  const alertIds = (alerts.data?.items ?? [])
    .flatMap(({ kind, resource_id }) => (kind === 'stuck' ? [resource_id] : []))
    .join()
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the IDs change
  useEffect(() => void invalidate(['adminOperationList']), [alertIds])
  // A retried operation is no longer stuck. It stays in the list, so that operators see whether it fails again.
  const [retriedIds, setRetriedIds] = useState<string[]>([])
  const retried = useQueries({
    queries: retriedIds.map((operation_id) => ({
      ...read('adminOperationGet', { params: { operation_id } }),
      refetchInterval: pollWhileRunning,
    })),
  }).flatMap(({ data }) => data ?? [])
  const [abandoning, setAbandoning] = useState<Row | null>(null)
  const projects = useQuery(readAll('adminProjectList', {}))
  const nameOf = new Map((projects.data ?? []).map((project) => [project.id, projectText(project)]))
  const listed = operations.data?.pages.flatMap(({ items }) => items) ?? []
  const stuckIds = listed.flatMap(({ is_stuck, operation_id }) => (is_stuck ? [operation_id] : [])).join()
  // Every stuck operation has an alert.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the IDs change
  useEffect(() => void invalidate(alertLists), [stuckIds])
  const rows = isOnlyStuck
    ? [...retried.filter(({ operation_id }) => !isListed(listed, operation_id)), ...listed]
    : listed
  const actions = actionColumn<Row>(
    '160px',
    (row) =>
      row.is_stuck && (
        <StuckActions
          operation={row}
          onRetried={() =>
            setRetriedIds((ids) => [...ids.filter((id) => id !== row.operation_id), row.operation_id])
          }
          onAbandon={() => setAbandoning(row)}
          isSmall
        />
      ),
  )
  const hasDetails = rows.some(({ step, error, attempts }) => step || error || attempts > 0)
  const columns: Column<Row>[] = [
    {
      key: 'what',
      title: 'Operation',
      width: 'minmax(124px, 1.2fr)',
      cell: (row) => <OperationLink operation={row} />,
    },
    {
      key: 'on',
      title: 'Resource',
      width: 'minmax(104px, 1.4fr)',
      cell: ({ metadata, resource_name }) => {
        const name = resource_name || `…${shortId(metadata.id)}`
        return metadata.type === 'vm' ? (
          <TenantVmLink vm={{ id: metadata.id, name }} />
        ) : (
          <span title={metadata.id}>{name}</span>
        )
      },
    },
    {
      key: 'project',
      title: 'Project',
      width: 'minmax(150px, 1.2fr)',
      isFoldable: true,
      cell: (row) => (
        <span title={row.project_id}>{nameOf.get(row.project_id) ?? `…${shortId(row.project_id)}`}</span>
      ),
    },
    {
      key: 'state',
      title: 'State',
      width: '120px',
      cell: (row) => <StateBadge state={row.is_stuck ? 'stuck' : row.state} />,
    },
    ...(hasDetails ? detailColumns : []),
    { ...timestampColumn('Started', 'started_at'), width: '150px' },
    ...(stuckIds ? [actions] : []),
  ]
  return (
    <FleetPage>
      <div className="filter-bar">
        <Select
          isSmall
          label="Show"
          value={search.show ?? ''}
          onChange={(show) => setSearch({ show })}
          choices={[
            { value: '', label: 'Stuck only' },
            { value: 'all', label: 'All tenants’ operations' },
          ]}
        />
        {operations.hasNextPage && (
          <span className="figures ml-auto text-ink-muted">Showing the newest {count(listed.length)}</span>
        )}
      </div>
      <Loaded query={operations}>
        {() =>
          rows.length === 0 ? (
            <p className="card px-4 py-3 text-ink-muted">
              {isOnlyStuck ? 'No stuck operations.' : 'No operations yet.'}
            </p>
          ) : (
            <Table label="Operations" rows={rows} columns={columns} rowKey={(row) => row.operation_id} />
          )
        }
      </Loaded>
      {operations.hasNextPage && (
        <div>
          <Button isBusy={operations.isFetchingNextPage} onClick={() => operations.fetchNextPage()}>
            Show older operations
          </Button>
        </div>
      )}
      {abandoning && <AbandonDialog operation={abandoning} onClose={() => setAbandoning(null)} />}
    </FleetPage>
  )
}

/** Columns that are shown only if an operation has a current step, an error or a failed attempt. */
const detailColumns: Column<Row>[] = [
  {
    key: 'attempts',
    title: 'Attempts',
    width: '90px',
    align: 'right',
    isFoldable: true,
    cell: (row) => row.attempts > 0 && row.attempts,
  },
  {
    key: 'error',
    title: 'Step and last error',
    width: 'minmax(150px, 1.6fr)',
    isFoldable: true,
    cell: ({ step, error }) =>
      (step || error) && (
        <>
          {step && <span className="text-ink">{stepText(step)}</span>}
          {step && error && ': '}
          {error}
        </>
      ),
  },
]
