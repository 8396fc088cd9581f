import type { Event } from '@slipway/sdk'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { operationOf } from '../../lib/event-groups.ts'
import { eventTypeText } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Loaded } from '../../ui/loaded.tsx'
import { TextTabs } from '../../ui/text-tabs.tsx'
import { Steps } from '../steps.tsx'

interface EventDetailsProps {
  /** Empty on pages of operators, which do not show steps here. */
  projectId: string
  /** The events of one row, newest first. */
  events: Event[]
}

/** The steps of an operation and the data of its events, below the row. */
export default function EventDetails({ projectId, events }: EventDetailsProps) {
  const operationId = operationOf(events[0]!)
  const byType = new Map(events.map((event) => [event.type, event]))
  const [search, setSearch] = useSearchState()
  const { resource_id } = events[0]!
  return (
    <div className="flex flex-col gap-3">
      {projectId && operationId && <OperationSteps projectId={projectId} operationId={operationId} />}
      <TextTabs
        label="Events"
        texts={[...byType.values()].toReversed().map((event) => {
          const text = JSON.stringify(event, null, 2)
          const name = eventTypeText(event.type)
          return { name, text, shown: text, copyLabel: 'Copy this event', empty: '' }
        })}
      />
      {resource_id !== search.resource && (
        <div>
          <button
            type="button"
            className="link text-sm"
            onClick={() => setSearch({ resource: resource_id, open: '' })}
          >
            Show all events of this resource
          </button>
        </div>
      )}
    </div>
  )
}

function OperationSteps({ projectId, operationId }: { projectId: string; operationId: string }) {
  const operation = useQuery({
    ...read('operationGet', { params: { project_id: projectId, operation_id: operationId } }),
    refetchInterval: ({ state }) => (state.data?.state === 'IN_PROGRESS' ? 1_000 : false),
  })
  return (
    <Loaded query={operation} rows={2}>
      {(data) => <Steps projectId={projectId} operation={data} />}
    </Loaded>
  )
}
