import type { Operation } from '@slipway/sdk'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { Steps } from './steps.tsx'

/** Shows the steps of the running operation. A failed operation stays visible until the next one. */
export function LatestOperation({
  projectId,
  resourceId,
  isKept = false,
}: {
  projectId: string
  resourceId: string
  isKept?: boolean
}) {
  const operations = useQuery({
    ...read('operationList', {
      params: { project_id: projectId },
      query: { resource_id: resourceId, limit: 5 },
    }),
    refetchInterval: ({ state }) => (state.data?.items.some(isRunning) ? 1_000 : false),
  })
  const items = operations.data?.items ?? []
  const shown = items.find(isRunning) ?? (items[0]?.state === 'FAILED' || isKept ? items[0] : undefined)
  if (!shown) return null
  return <Steps projectId={projectId} operation={shown} />
}

const isRunning = (operation: Operation) => operation.state === 'IN_PROGRESS'
