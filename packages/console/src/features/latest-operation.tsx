import type { Operation } from '@slipway/sdk'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { Steps } from './steps.tsx'

/** Shows the steps of the running operation. A failed operation stays visible until the next one. */
export function LatestOperation({
  projectId,
  resourceId,
  isAlwaysShown = false,
}: {
  projectId: string
  resourceId: string
  /** True if the latest operation is shown even if it succeeded. */
  isAlwaysShown?: boolean
}) {
  const operations = useQuery({
    ...read('operationList', {
      params: { project_id: projectId },
      query: { resource_id: resourceId, limit: 5 },
    }),
    refetchInterval: ({ state }) => (state.data?.items.some(isRunning) ? 1_000 : false),
  })
  const items = operations.data?.items ?? []
  const shown =
    items.find(isRunning) ?? (items[0]?.state === 'FAILED' || isAlwaysShown ? items[0] : undefined)
  if (!shown) return null
  return <Steps projectId={projectId} operation={shown} />
}

const isRunning = (operation: Operation) => operation.state === 'IN_PROGRESS'
