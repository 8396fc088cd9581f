import type { Operation, OperationState } from '@slipway/sdk'
import { keepPreviousData } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useProjectId } from '../api/me.ts'
import { read } from '../api/read.ts'
import { useResourceNames } from '../api/resource-names.ts'
import { useQuery } from '../api/use-query.ts'
import { EventTabs } from '../features/page-tabs.tsx'
import { operationText, Steps } from '../features/steps.tsx'
import { shortId } from '../lib/format.ts'
import { stateWord } from '../lib/states.ts'
import { useSearchState } from '../lib/use-search-state.ts'
import { Button } from '../ui/button.tsx'
import { timestampColumn } from '../ui/columns/time-column.tsx'
import { Select } from '../ui/field.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Page } from '../ui/page.tsx'
import { StateBadge } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { Elapsed } from '../ui/time.tsx'

const states: OperationState[] = ['IN_PROGRESS', 'SUCCEEDED', 'FAILED']

export function Operations() {
  const projectId = useProjectId()
  const [search, setSearch] = useSearchState()
  const operations = useQuery({
    ...read('operationList', {
      params: { project_id: projectId },
      query: {
        state: states.find((state) => stateWord(state) === search.state),
        page_token: search.page,
        limit: 100,
      },
    }),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.items.some((each) => each.state === 'IN_PROGRESS') ? 2_000 : false,
  })
  const currentNames = useResourceNames(projectId)
  const names = new Map([...requestedNames(operations.data?.items ?? []), ...currentNames])
  const open = operations.data?.items.find(({ operation_id }) => operation_id === search.operation)
  const columns: Column<Operation>[] = [
    {
      key: 'what',
      title: 'Operation',
      width: 'minmax(170px, 1fr)',
      cell: (operation) => (
        <button
          type="button"
          className="text-left font-medium hover:text-accent-text hover:underline"
          onClick={() =>
            setSearch({
              operation: operation.operation_id === search.operation ? '' : operation.operation_id,
            })
          }
        >
          {operationText(operation)}
        </button>
      ),
    },
    {
      key: 'on',
      title: 'Resource',
      width: 'minmax(160px, 2.4fr)',
      cell: (operation) => <Resource operation={operation} projectId={projectId} names={names} />,
    },
    {
      key: 'state',
      title: 'State',
      width: '130px',
      cell: (operation) => <StateBadge state={operation.state} />,
    },
    {
      key: 'why',
      title: 'Result',
      width: 'minmax(160px, 1.6fr)',
      isFoldable: true,
      cell: (operation) => <Outcome operation={operation} />,
    },
    {
      key: 'took',
      title: 'Duration',
      width: '100px',
      align: 'right',
      cell: (operation) => <Elapsed from={operation.started_at} to={operation.completed_at} />,
    },
    timestampColumn('Started', 'started_at'),
  ]
  return (
    <Page title="Operations" isWide>
      <EventTabs />
      <div className="flex items-center gap-2">
        <Select
          isSmall
          label="State"
          value={search.state ?? ''}
          onChange={(state) => setSearch({ state, page: '' })}
          choices={[
            { value: '', label: 'Any state' },
            ...states.map(stateWord).map((word) => ({ value: word, label: word })),
          ]}
        />
      </div>
      {open && <Steps projectId={projectId} operation={open} />}
      <Loaded query={operations}>
        {(data) =>
          data.items.length === 0 ? (
            <p className="card px-4 py-3 text-ink-muted">
              No operations. Every change to a VM, disk or firewall rule is listed here for 90 days.
            </p>
          ) : (
            <Table
              label="Operations"
              rows={data.items}
              columns={columns}
              rowKey={({ operation_id }) => operation_id}
            />
          )
        }
      </Loaded>
      <div className="flex gap-2">
        {search.page && <Button onClick={() => setSearch({ page: '' })}>Newest</Button>}
        {operations.data?.next_page_token && (
          <Button onClick={() => setSearch({ page: operations.data.next_page_token })}>Older</Button>
        )}
      </div>
    </Page>
  )
}

/** Returns the names from creation requests, which also exist for deleted resources. */
const requestedNames = (operations: Operation[]) =>
  operations.flatMap(({ metadata: { id, request } }): [string, string][] =>
    typeof request.name === 'string' ? [[id, request.name]] : [],
  )

interface ResourceProps {
  operation: Operation
  projectId: string
  names: Map<string, string>
}

function Resource({ operation: { metadata }, projectId, names }: ResourceProps) {
  const name = names.get(metadata.id) ?? `…${shortId(metadata.id)}`
  if (metadata.type !== 'vm') return <span title={metadata.id}>{name}</span>
  return (
    <Link
      to="/projects/$projectId/vms/$vmId"
      params={{ projectId, vmId: metadata.id }}
      className="hover:text-accent-text hover:underline"
    >
      {name}
    </Link>
  )
}

function Outcome({ operation }: { operation: Operation }) {
  if (operation.state !== 'FAILED') return null
  const { code, message } = (operation.result ?? {}) as { code?: string; message?: string }
  return <span title={code}>{message}</span>
}
