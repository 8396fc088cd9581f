import type { RouteId, RouteResponse } from '@slipway/sdk'
import { keepPreviousData } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { invalidate, useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { fleetPollMs, settingsPollMs } from '../../features/fleet/poll.ts'
import { projectText } from '../../features/fleet/project-picker.tsx'
import { TenantVmLink } from '../../features/fleet/tenant-vm-link.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { operationText } from '../../features/steps.tsx'
import { shortId, stepText } from '../../lib/format.ts'
import { operatorCommands } from '../../lib/shell.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import { Select } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'

type Row = RouteResponse<'adminOperationList'>['items'][number]

const alertLists: RouteId[] = ['adminAlertList', 'organizationAlertList']

export function FleetOperations() {
  const [search, setSearch] = useSearchState()
  const isOnlyStuck = search.show !== 'all'
  const operations = useQuery({
    ...read('adminOperationList', { query: isOnlyStuck ? { stuck: true, limit: 100 } : { limit: 100 } }),
    placeholderData: keepPreviousData,
    // Each read is recorded in the audit log of every tenant shown, so poll only while an operation runs.
    refetchInterval: ({ state }) =>
      state.data?.items.some((row) => row.state === 'IN_PROGRESS' && !row.is_stuck) ? settingsPollMs : false,
  })
  // A new alert about a stuck operation triggers a refetch of the list.
  const alerts = useQuery({ ...read('adminAlertList', {}), refetchInterval: fleetPollMs })
  const alertIds = (alerts.data?.items ?? [])
    .flatMap(({ kind, resource_id }) => (kind === 'stuck' ? [resource_id] : []))
    .join()
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the IDs change
  useEffect(() => void invalidate(['adminOperationList']), [alertIds])
  const [abandoning, setAbandoning] = useState<Row | null>(null)
  const retry = useAction({
    run: (row: Row) => client.adminOperationRetry({ operation_id: row.operation_id }),
    done: (row) => `Retrying: ${operationText(row)}`,
    failed: (row) => `Could not retry: ${operationText(row)}`,
    invalidates: ['adminOperationList'],
  })
  const abandon = useAction({
    run: (row: Row) => client.adminOperationAbandon({ operation_id: row.operation_id }),
    done: (row) => `Abandoned: ${operationText(row)}`,
    invalidates: ['adminOperationList'],
    showsErrors: true,
  })
  const projects = useQuery(readAll('adminProjectList', {}))
  const nameOf = new Map((projects.data ?? []).map((project) => [project.id, projectText(project)]))
  const stuckIds = (operations.data?.items ?? [])
    .flatMap(({ is_stuck, operation_id }) => (is_stuck ? [operation_id] : []))
    .join()
  // Every stuck operation is also an alert.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the IDs change
  useEffect(() => void invalidate(alertLists), [stuckIds])
  const actions = actionColumn<Row>(
    '160px',
    (row) =>
      row.is_stuck && (
        <>
          <Button
            size="small"
            isBusy={retry.isPending && retry.variables?.operation_id === row.operation_id}
            onClick={() => retry.mutate(row)}
          >
            Retry
          </Button>
          <Button size="small" kind="danger" onClick={() => setAbandoning(row)}>
            Abandon
          </Button>
        </>
      ),
  )
  const hasDetails = (operations.data?.items ?? []).some(
    ({ step, error, attempts }) => step || error || attempts > 0,
  )
  const columns: Column<Row>[] = [
    {
      key: 'what',
      title: 'Operation',
      width: 'minmax(124px, 1.2fr)',
      cell: (row) => (
        <span className="font-medium" title={row.operation_id}>
          {operationText(row)}
        </span>
      ),
    },
    {
      key: 'on',
      title: 'Resource',
      width: 'minmax(130px, 1.4fr)',
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
      <div>
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
      </div>
      <Loaded query={operations}>
        {(data) =>
          data.items.length === 0 ? (
            <p className="card px-4 py-3 text-ink-muted">
              {isOnlyStuck ? 'No stuck operations.' : 'No operations yet.'}
            </p>
          ) : (
            <Table
              label="Operations"
              rows={data.items}
              columns={columns}
              rowKey={(row) => row.operation_id}
            />
          )
        }
      </Loaded>
      {abandoning && (
        <Confirm
          isOpen
          onClose={() => setAbandoning(null)}
          title={`Abandon: ${operationText(abandoning)}`}
          action="Abandon operation"
          commands={operatorCommands({
            cli: `slipway admin operation abandon ${abandoning.operation_id}`,
            path: `/operations/${abandoning.operation_id}/abandon`,
          })}
          {...submitProps(abandon, abandoning, () => setAbandoning(null))}
        >
          <p>
            The operation will be marked as failed. Resources that it could not remove may need manual
            cleanup.
          </p>
        </Confirm>
      )}
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
          {step && <span className="text-ink-muted">{stepText(step)} </span>}
          {error}
        </>
      ),
  },
]
